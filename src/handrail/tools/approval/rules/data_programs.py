"""Programs whose operands are data, files or other people's words: a destructive word there is no sub-command."""

from __future__ import annotations

DATA_PROGRAMS = frozenset(
    (
        # Texts and files
        "echo printf grep rg ag ack ugrep pcregrep man info help which where whence type whatis whereis apropos tldr cheat cat tac ls ll la exa eza lsd dir vdir "
        "cd pushd popd dirs pwd mkdir touch head tail less more most wc sort uniq cut tr awk sed gsed test [ [[ ]] export set unset alias unalias read readonly declare typeset local "
        "case for while until if then else fi do done case esac function return exit break continue shift getopts let true false : yes seq sleep wait jobs fg bg disown "
        "mv cp ln install chmod chown chgrp file stat diff cmp comm patch tee basename dirname realpath readlink date cal ncal expr bc dc factor numfmt rev tac nl fold fmt pr "
        "column paste join split csplit strings od xxd hexdump base64 base32 md5sum sha1sum sha256sum sha512sum b2sum cksum sum shasum md5 iconv dos2unix unix2dos expand unexpand "
        "jq yq xq tomlq dasel gron fx jo mlr xsv csvcut csvgrep csvsql q xmllint xmlstarlet xml xsltproc pandoc vim nvim vi nano emacs code codium subl micro helix hx ed ex kak joe "
        "zip unzip tar gzip gunzip bzip2 xz zstd 7z rar unrar ar cpio zcat bzcat xzcat lz4 zgrep zless "
        "find fd locate mlocate plocate updatedb tree du df look spell aspell hunspell ispell dict wn trans say espeak spd-say figlet toilet banner cowsay lolcat fortune sl "
        "xdotool wmctrl xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send zenity yad dialog whiptail gum fzf sk rofi dmenu "
        "ffmpeg ffprobe sox convert magick mogrify montage identify composite exiftool exiv2 id3v2 mid3v2 inkscape gimp gs pdftk qpdf pdfunite mutool "
        "metaflac mkvpropedit mkvmerge kid3-cli eyeD3 id3tag operon vorbiscomment opustags AtomicParsley jhead jpegoptim optipng pngquant cwebp cavif mpv vlc mpc mpd cmus mocp playerctl "
        "autoflake autopep8 yapf isort boxes htmlq colrm col msgattrib recsel recdel recins qpdf detox tput stty loginctl popd dirs abduco dtach shpool direnv timew task todo.sh taskwarrior "
        # Languages, builds and tests
        "make cmake ninja meson bazel buck scons just task mage rake tox nox pytest jest mocha vitest karma ava cypress playwright phpunit rspec minitest behave "
        "cargo go rustc gcc g++ clang clang++ ld cc c++ tcc javac java kotlinc kotlin scala scalac ghc runghc stack cabal dune ocaml zig nim crystal swift swiftc dotnet mono "
        "python node deno bun ruby perl php lua tclsh R Rscript julia elixir erl guile sbcl racket irb ipython jupyter npx bunx pnpx uvx pipx "
        "npm yarn pnpm pip uv poetry pdm pipenv hatch gem bundle composer mix lein gradle mvn ant sbt rails flask django-admin tsc eslint prettier black ruff mypy flake8 pylint isort "
        "webpack vite rollup esbuild parcel turbo nx lerna rush gulp grunt babel svelte-kit next nuxt ng vue astro gatsby hugo jekyll mkdocs sphinx-build doxygen "
        "git hg svn terraform pre-commit shellcheck shfmt hadolint yamllint markdownlint commitlint terraform-docs tflint checkov semgrep trivy grype syft "
        "bash sh zsh dash ksh fish source . eval exec command builtin sudo doas env nohup timeout time nice ionice xargs parallel watch ssh mosh su runuser chroot "
        "curl wget http aria2c httpie ping dig host nslookup whois traceroute mtr netstat ss lsof ps top htop btop pgrep pidof free uptime vmstat iostat uname id who w last groups "
        "logger write wall mail mutt sendmail msmtp tmux screen less strace ltrace gdb lldb perf valgrind objdump nm readelf ldd addr2line strip size "
        "dpkg-query rpm apt-cache apt-file apt-mark repoquery gsettings dconf xdg-mime xdg-open open xdg-settings kubectl docker aws gcloud az "
        "trash-list pygmentize bat ccze multitail lnav history fc bind complete compgen compopt hash umask ulimit trap times caller enable mapfile readarray "
        "ansible-doc ansible-lint ansible-inventory curl-config pkg-config autoconf automake libtool configure m4 flex bison yacc lex protoc thrift swig "
        "sqlite3 psql mysql redis-cli mongosh gnuplot octave bc units dot neato tput stty reset clear tset setterm loadkeys xmodmap setxkbmap "
        "llm ollama chatgpt sgpt aider claude codex gemini handrail spatch coccinelle xgettext msgfmt msgattrib po4a envsubst gettext"
    ).split()
)
