"""Make programs in other languages that set, change and pass on values by the means of each language, and run what came out.

As in `scripts`, the words are such that some programs end in `rm -rf`: the interpreter says which.
"""

from __future__ import annotations

import random
import shlex

_WORDS = ("ls", "rm", "r", "m", "ls -l", "rm -rf", "mr", "xrm", "sm", "rs")
_END = " -rf ~/work"
_NAMES = ("a", "b", "c")

PERL = {
    "start": "%w=(x=>'rm',y=>'ls');",
    "simple": """
$N='W';
my $N='W';
our $N="W";
$N="W";
$N.='W';
$N=$M;
$N=$M.'W';
$N="${M}W";
$N="$M$O";
($N,$M)=('W','V');
($N,$M)=($M,$N);
$N=~s/s/m/;
$N=~s/^./r/;
$N=~tr/ls/rm/;
$N=~y/x//d;
($N=$M)=~s/x//;
chop($N);
chop $N;
$N=reverse $M;
$N=reverse('W');
$N=lc('W');
$N=lc uc $M;
$N=substr($M,1);
substr($N,0,1)='r';
substr($N,0,1,'r');
$N=sprintf('%s%s','W',$M);
$N=join('','W','V');
$N=join '',$M,$O;
$N='W' x 1;
$N=(split /,/,'W,V')[1];
($N)=split(' ',$M);
@N=('W','V'); $N=$N[0];
@N=('W','V'); $N=$N[1];
@N=qw(W V); $N=pop @N;
@N=qw(W V); push @N,'W'; $N=$N[-1];
@N=('W'); unshift(@N,'V'); $N="@N";
$N=shift @{['W','V']};
$h{N}='W'; $N=$h{N};
$h{N}.='W'; $N.=$h{N};
$N=$w{x};
$N=$w{y};
my %h=(N=>'W'); $N=$h{N};
$r=\\$N; $$r='W';
$r=\\$N; ${$r}.='W';
$N=['W','V']->[0];
$N={k=>'W'}->{k};
$N=do{'W'};
$N=-e 'here'?'W':'V';
$N||='W';
$N//='W';
$N='W' if -e 'here';
$N='W' unless -e 'here';
$N='W' if $M eq 'rm';
for $N ('W','V') {}
for (\\$N) {$$_='W'}
for ($N) {s/x//;$_.='W'}
$_='W'; $N=$_;
$_='W'; s/s/m/; $N=$_;
local $N='W';
*N=\\'W';
*N=\\$M;
eval "\\$N='W'";
eval {$N='W'};
sub fN {return 'W'} $N=fN();
sub gN {$N='W'} gN();
sub hN {$_[0]='W'} hN($N);
$s=sub {$N=shift}; $s->('W');
$s=sub {$N.=$_[0]}; &$s('W');
$N=chr(114).chr(109);
$N=pack('A*','W');
$N=pack('C*',114,109);
$N=ucfirst(lc('W')); $N=lcfirst $N;
$N=q(W);
$N=qq{W};
$N=q/W/;
($N)='W'=~/(.)$/;
$N=$1 if 'W'=~/^(.)/;
$N=sprintf "%s",$M;
$N=quotemeta $M;
@N=map {$_} ('W','V'); $N=$N[0];
@N=sort ('W','V'); $N=$N[0];
@N=reverse('W','V'); $N=$N[0];
@N=grep {/r/} ('W','V'); $N=$N[0];
open(my $f,'<',\\'W'); $N=<$f>;
read(DATA,$N,2);
use constant CN=>'W'; $N=CN;
$N=$ENV{USER} ? 'W' : 'V';
$ENV{N}='W'; $N=$ENV{N};
""",
    "compound": """
if (-e 'here') { B }
if (-e 'there') { B } else { C }
unless ($N eq 'ls') { B }
for my $i (1..2) { B }
foreach my $i ('W','V') { $N=$i; B }
for ($i=0;$i<2;$i++) { B }
while ($k++<2) { B }
until ($k++>1) { B }
do { B } while ($k++<1);
{ local $N=$M; B }
{ my $N='W'; B }
sub pN { B } pN();
my $q=sub { B }; $q->();
eval { B; 1 } or do { C };
-e 'here' and do { B };
""",
    "use": """
system("$N -rf ~/work");
system($N.' -rf ~/work');
system "$N$M -rf ~/work";
system($N,'-rf',"$ENV{HOME}/work");
system $N,"-rf","/srv/data";
system("$N -rf /srv/data") if $N;
`$N -rf /srv/data`;
qx($N -rf /srv/data);
qx{$N$M -rf /srv/data};
exec($N,'-rf','/srv/data') if fork()==0; wait;
open(P,"|$N -rf /srv/data"); close P;
open(P,'-|',$N,'-rf','/srv/data'); close P;
@c=($N,'-rf','/srv/data'); system(@c);
@c=($N); push @c,'-rf','/srv/data'; system @c;
$c=$N.' -rf /srv/data'; system($c);
$c="$N -rf "; $c.="/srv/data"; system($c);
eval "system('$N -rf /srv/data')";
system(join(' ',$N,'-rf','/srv/data'));
for my $x ($N,$M) { system("$x -rf /srv/data") }
sub run { system("$_[0] -rf /srv/data") } run($N);
sub run2 { my ($x)=@_; system("$x -rf /srv/data") } run2($N);
my %t=(k=>$N); system("$t{k} -rf /srv/data");
system(sprintf('%s -rf /srv/data',$N));
""",
    "run": "perl -e {}",
}
JAVASCRIPT = {
    "start": "const {execSync,spawnSync}=require('child_process'),fs=require('fs');"
    "var a='',b='',c='',k=0,t,o={};const T=f=>{try{f()}catch(e){}};",
    "simple": """
N='W';
N="W";
N=`W`;
N+='W';
N=M;
N=M+'W';
N=`${M}W`;
N='W'.concat(M);
[N,M]=['W','V'];
[N,M]=[M,N];
({x:N}={x:'W'});
N=N.replace('s','m');
N=N.replace(/^./,'r');
N=N.split('').reverse().join('');
N='W'.split('').reverse().join('');
N=N.slice(1);
N=N.substring(0,2);
N=N.toLowerCase();
N='W'.trim();
N=['W','V'][0];
N=['W','V'][1];
N=['W','V'].join('');
N=['W','V'].pop();
N=['W','V'].find(x=>x[0]=='r')||'ls';
N=['W','V'].filter(x=>x.length)[0];
t=['W']; t.push('V'); N=t[t.length-1];
t=['W']; t.unshift('V'); N=t[0];
t=['W','V']; t.reverse(); N=t[0];
t=['W','V']; t.sort(); N=t[0];
t=['W']; t[0]='V'; N=t[0];
o={k:'W'}; N=o.k;
o={k:'W'}; o.k='V'; N=o.k;
o={k:'W'}; o['k']+='V'; N=o['k'];
o=Object.assign({k:'W'},{k:'V'}); N=o.k;
o={...{k:'W'},k:'V'}; N=o.k;
N=({x:'W',y:'V'})['x'];
N=new Map([['x','W']]).get('x');
N=fs.existsSync('here')?'W':'V';
N=N||'W';
N||='W';
N??='W';
N&&='W';
if(fs.existsSync('here'))N='W';
N=(()=>'W')();
N=(x=>x+'W')('V');
(function(){N='W'})();
(x=>{N=x})('W');
function fN(x){return x} N=fN('W');
function gN(){N='W'} gN();
const hN=x=>{N+=x}; hN('W');
var N='W';
{let N='W';}
eval("N='W'");
globalThis.N='W';
N=String.fromCharCode(114,109);
N=Buffer.from('W').toString();
N=atob(btoa('W'));
N='W'.padEnd(2,'m');
N='W'.repeat(1);
N=[...'W'].map(x=>x).join('');
['W','V'].forEach(x=>{N=x});
for(const x of ['W','V'])N=x;
for(const x in {W:1})N=x;
N=JSON.parse('"W"');
N=Reflect.get({k:'W'},'k');
class CN{static v='W'} N=CN.v;
N=(0,'W');
N='W'.at(-1)+'m';
switch(M){case 'rm':N='W';break;default:N='V'}
try{throw 'W'}catch(e){N=e}
N=function*(){yield 'W'}().next().value;
var [N]=['W'];
N=arguments.length?'W':'V';
process.env.N='W'; N=process.env.N;
""",
    "compound": """
if(fs.existsSync('here')){ B }
if(fs.existsSync('there')){ B }else{ C }
for(let i=0;i<2;i++){ B }
for(const i of ['W','V']){ N=i; B }
while(k++<2){ B }
do{ B }while(k++<1);
(()=>{ B })();
(function(N){ B })('W');
[1,2].forEach(()=>{ B });
try{ B }finally{ C }
{ B }
""",
    "use": """
T(()=>execSync(N+' -rf ~/work'));
T(()=>execSync(`${N} -rf ~/work`));
T(()=>execSync(`${N}${M} -rf ~/work`));
T(()=>execSync(N+M+' -rf /srv/data'));
spawnSync(N,['-rf','/srv/data']);
spawnSync('sh',['-c',N+' -rf /srv/data']);
spawnSync(N+' -rf /srv/data',{shell:true});
t=[N,'-rf','/srv/data']; spawnSync(t[0],t.slice(1));
t=[]; t.push(N,'-rf /srv/data'); T(()=>execSync(t.join(' ')));
t=N+' -rf'; t+=' /srv/data'; T(()=>execSync(t));
for(const x of [N,M])T(()=>execSync(x+' -rf /srv/data'));
[N,M].forEach(x=>T(()=>execSync(`${x} -rf /srv/data`)));
const run=x=>T(()=>execSync(x+' -rf /srv/data')); run(N);
function run2(x){T(()=>execSync(`${x} -rf /srv/data`))} run2(N);
T(()=>eval('execSync(N+" -rf /srv/data")'));
T(()=>require('child_process')['exec'+'Sync'](N+' -rf /srv/data'));
o={k:N}; T(()=>execSync(`${o.k} -rf /srv/data`));
const {k:z}={k:N}; T(()=>execSync(`${z} -rf /srv/data`));
T(()=>execSync([N,'-rf','/srv/data'].join(' ')));
""",
    "run": "node -e {}",
}
PYTHON = {
    "start": "import os, subprocess\na = b = c = ''; t = []; o = {}; k = 0",
    "simple": """
N = 'W'
N = "W"
N += 'W'
N = M
N = M + 'W'
N = f'{M}W'
N = '%sW' % M
N = '{}{}'.format('W', M)
N, M = 'W', 'V'
N, M = M, N
(N, *t) = ['W', 'V']
*t, N = ['W', 'V']
N = N.replace('s', 'm')
N = N[::-1]
N = 'W'[::-1]
N = N[1:]
N = N.lower()
N = 'W V'.split()[1]
N = ['W', 'V'][0]
N = ''.join(['W', 'V'])
N = ''.join(reversed('W'))
N = ['W', 'V'].pop()
N = max(['W', 'V'])
N = min('W', 'V')
N = next(x for x in ['W', 'V'])
t = ['W']; t.append('V'); N = t[-1]
t = ['W']; t[0] = 'V'; N = t[0]
t = ['W', 'V']; t.reverse(); N = t[0]
t = ['W', 'V']; t.sort(); N = t[0]
t = ['W']; u = t; u[0] = 'V'; N = t[0]
t = ['W']; t += ['V']; N = t[-1]
t = ['W', 'V']; del t[0]; N = t[0]
o = {'k': 'W'}; N = o['k']
o = {'k': 'W'}; o['k'] = 'V'; N = o['k']
o = {'k': 'W'}; o.update(k='V'); N = o['k']
o = dict(k='W'); N = o.get('k')
o = {'k': 'W'}; o |= {'k': 'V'}; N = o['k']
N = {'x': 'W'}.get('y', 'V')
N = 'W' if os.path.exists('here') else 'V'
N = N or 'W'
N = (lambda: 'W')()
N = (lambda x: x + 'W')('V')
(N := 'W')
globals()['N'] = 'W'
exec("N = 'W'")
vars()['N'] = 'W'
setattr(__import__('__main__'), 'N', 'W')
N = chr(114) + chr(109)
N = bytes([114, 109]).decode()
N = 'W'.encode().decode()
N = 'W'.translate({115: 'm'})
N = __import__('re').sub('x', '', 'W')
N = os.environ.setdefault('N', 'W')
os.environ['N'] = 'W'; N = os.environ['N']
N = [x for x in ('W', 'V')][1]
N = list(map(str, ['W', 'V']))[0]
N = sorted(['W', 'V'])[0]
N = dict(zip(['k'], ['W']))['k']
N = type('C', (), {'v': 'W'}).v
N = eval("'W'")
N = str.join('', ['W', 'V'])
N = 'W'.removeprefix('x')
N = ('W', 'V')[bool(M)]
N = [*'W'][0] + 'm'
N = 'W'.partition('x')[2]
N = input.__name__ and 'W'
N = __import__('json').loads('"W"')
N = print('', end='') or 'W'
""",
    "compound": """
if os.path.exists('here'): B
if M == 'rm': B
for i in range(2): B
for N in ['W', 'V']: B
for N, M in [('W', 'V')]: B
while (k := k + 1) < 3: B
with open('here') as f: B
try:⏎ raise ValueError('W')⏎except ValueError as e:⏎ N = str(e)
def fN(x):⏎ return x⏎N = fN('W')
def gN():⏎ global N⏎ N = 'W'⏎gN()
def hN(x=['W']):⏎ x.append('V')⏎ return x⏎N = hN()[-1]
def iN():⏎ yield 'W'⏎N = next(iN())
class CN:⏎ v = 'W'⏎N = CN.v
class DN:⏎ def __init__(self):⏎  self.v = 'W'⏎N = DN().v
match M:⏎ case 'rm': N = 'W'⏎ case x: N = x + 'V'
def jN():⏎ x = 'W'⏎ def z():⏎  nonlocal x⏎  x = 'V'⏎ z()⏎ return x⏎N = jN()
""",
    "use": """
os.system(N + ' -rf ~/work')
os.system(f'{N} -rf ~/work')
os.system('%s%s -rf /srv/data' % (N, M))
subprocess.call([N, '-rf', '/srv/data']) if N and N.isalpha() else 0
subprocess.run(N + ' -rf /srv/data', shell=True)
t = [N, '-rf', '/srv/data']; subprocess.run(' '.join(t), shell=True)
t = [N]; t += ['-rf', '/srv/data']; os.system(' '.join(t))
t = N + ' -rf'; t += ' /srv/data'; os.system(t)
for x in (N, M): os.system(x + ' -rf /srv/data')
[os.system(x + ' -rf /srv/data') for x in [N, M]]
(lambda x: os.system(x + ' -rf /srv/data'))(N)
list(map(os.system, [N + ' -rf /srv/data']))
run = os.system; run(f'{N} -rf /srv/data')
getattr(os, 'sys' + 'tem')(N + ' -rf /srv/data')
exec("os.system(N + ' -rf /srv/data')")
eval('os.system')(N + ' -rf /srv/data')
o = {'k': N}; os.system(o['k'] + ' -rf /srv/data')
os.system('{k} -rf /srv/data'.format(**{'k': N}))
os.popen(N + ' -rf /srv/data').read()
print(N + ' -rf /srv/data', file=subprocess.Popen(['sh'], stdin=-1, text=True).stdin, flush=True)
""",
    "run": "python3 -c {}",
}
AWK = {
    "start": "",
    "simple": """
N="W";
N=N "W";
N=M;
N=M "W";
N="W" M;
N=M O;
sub(/s/,"m",N);
gsub(/x/,"",N);
sub(/^./,"r",N);
N=substr(M,2);
N=substr("W",1,2);
N=tolower("W");
N=sprintf("%s%s","W",M);
N=sprintf("%c%c",114,109);
N=(M=="rm")?"W":"V";
t["k"]="W"; N=t["k"];
t[1]="W"; t[1]=t[1] "V"; N=t[1];
split("W V",t," "); N=t[2];
split("W,V",t,","); N=t[1];
$0="W V"; N=$2;
$0="W"; $1="V"; N=$0;
"echo W" | getline N;
N="W"; N="V";
if (M) N="W";
N=f1("W");
f2();
f3(u); N=u["k"];
k++; N=k>1?"W":"V";
N=ENVIRON["USER"]?"W":"V";
match("W",/m/); N=substr("W",RSTART);
delete t; t[1]="W"; for (i in t) N=t[i];
""",
    "compound": """
if (M=="rm") { B }
if (k) { B } else { C }
for (i=0;i<2;i++) { B }
while (k++<2) { B }
do { B } while (k++<1);
{ B }
for (i in t) { N=t[i]; B }
""",
    "use": """
system(N " -rf /srv/data");
system(N M " -rf /srv/data");
N " -rf /srv/data" | getline; close(N " -rf /srv/data");
print N " -rf /srv/data" | "sh"; close("sh");
printf "%s -rf /srv/data\\n", N | "sh"; close("sh");
x=N " -rf "; x=x "/srv/data"; system(x);
print "x" | (N " -rf /srv/data"); close(N " -rf /srv/data");
system(sprintf("%s -rf /srv/data",N));
""",
    "wrap": 'function f1(x){return x} function f2(){a="rm"} function f3(y){y["k"]="rm"} BEGIN { {} }',
    "run": "awk {}",
}
TCL = {
    "start": "set a {}; set b {}; set c {}; set k 0",
    "simple": """
set N W
set N "W"
set N {W}
append N W
set N $M
set N $M\\W
set N "${M}W"
set N [string range $M 1 end]
set N [string map {s m} $M]
set N [string reverse W]
set N [string tolower W]
set N [join {W V} {}]
set N [lindex {W V} 1]
set N [format %s%s W $M]
set N [regsub x W {}]
regsub ^. $M r N
lassign {W V} N M
foreach N {W V} {}
set t(k) W; set N $t(k)
array set t {k W}; set N $t(k)
set d [dict create k W]; set N [dict get $d k]
lappend N W; set N [lindex $N end]
proc fN {x} {return $x}; set N [fN W]
proc gN {} {global N; set N W}; gN
proc hN {v} {upvar $v x; set x W}; hN N
upvar 0 M zN; set zN W
eval {set N W}
eval "set N W"
set N [expr {[file exists here] ? "W" : "V"}]
if {[file exists here]} {set N W}
set N [subst {W$M}]
scan W %s N
variable N W
set n N; set $n W
""",
    "compound": """
if {[file exists here]} { B }
if {$N eq "rm"} { B } else { C }
foreach i {1 2} { B }
for {set i 0} {$i<2} {incr i} { B }
while {[incr k]<3} { B }
proc p {} { global a b c; B }; p
catch { B }
""",
    "use": """
catch {exec $N -rf /srv/data}
catch {exec {*}[list $N -rf /srv/data]}
catch {exec sh -c "$N -rf /srv/data"}
catch {eval exec $N -rf /srv/data}
catch {eval [list exec $N -rf /srv/data]}
catch {close [open "|$N -rf /srv/data"]}
set x "$N -rf /srv/data"; catch {exec sh -c $x}
foreach x [list $N $M] {catch {exec $x -rf /srv/data}}
proc run {x} {catch {exec $x -rf /srv/data}}; run $N
set e exec; catch {$e $N -rf /srv/data}
""",
    "join": "\n",
    "run": "tclsh <<'END'\n{}\nEND",
}
LANGUAGES = {"perl": PERL, "javascript": JAVASCRIPT, "python": PYTHON, "awk": AWK, "tcl": TCL}


class Programs:
    """Makes programs of one language by chance."""

    def __init__(self, chance: random.Random, language: str) -> None:
        self._chance = chance
        self._table = LANGUAGES[language]
        self._lines = {
            kind: [line.replace("\\\\", "\\") for line in self._table[kind].strip("\n").split("\n")]
            for kind in ("simple", "compound", "use")
        }
        self._indented = language == "python"

    def command(self) -> str:
        """A command that runs such a program."""
        pieces = [self._table["start"], *(self._statement(0) for _ in range(self._chance.randint(1, 3)))]
        pieces += [self._filled("use", 9) for _ in range(1)]
        text = ("\n" if self._indented else self._table.get("join", "\n")).join(filter(None, pieces))
        text = self._table.get("wrap", "{}").replace("{}", text, 1)
        run = self._table["run"]
        inside = text if "<<" in run else shlex.quote(text)
        return "touch here; " + run.replace("{}", inside, 1)

    def _statement(self, depth: int) -> str:
        compound = depth < 2 and self._chance.random() < 0.4
        return self._filled("compound" if compound else "simple", depth)

    def _filled(self, kind: str, depth: int) -> str:
        line = self._chance.choice(self._lines[kind])
        names = self._chance.sample(_NAMES, 3)
        filled = ""
        for place, sign in enumerate(line):
            alone = not (line[place - 1 : place].isalpha() and place) and not line[place + 1 : place + 2].isalpha()
            follows = place and line[place - 1] in "fghijpCDz"
            if sign in "NMO" and (alone or (follows and sign == "N")):
                filled += names["NMO".index(sign)]
            elif sign in "WV" and alone:
                filled += self._chance.choice(_WORDS)
            elif sign in "BC" and alone and kind == "compound":
                filled += self._body(depth)
            else:
                filled += sign
        return filled.replace("⏎", "\n")

    def _body(self, depth: int) -> str:
        count = self._chance.randint(1, 2)
        if self._indented:
            simple = [self._filled("simple", depth) for _ in range(count)]
            return "; ".join(simple)
        return "; ".join(self._statement(depth + 1) for _ in range(count))
