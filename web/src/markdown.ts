// Markdown and syntax colours; loaded when the first conversation is shown. Their HTML is sanitised before it is used.
import DOMPurify from "dompurify";
import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import c from "highlight.js/lib/languages/c";
import cpp from "highlight.js/lib/languages/cpp";
import csharp from "highlight.js/lib/languages/csharp";
import css from "highlight.js/lib/languages/css";
import diff from "highlight.js/lib/languages/diff";
import dockerfile from "highlight.js/lib/languages/dockerfile";
import go from "highlight.js/lib/languages/go";
import ini from "highlight.js/lib/languages/ini";
import java from "highlight.js/lib/languages/java";
import javascript from "highlight.js/lib/languages/javascript";
import json from "highlight.js/lib/languages/json";
import kotlin from "highlight.js/lib/languages/kotlin";
import makefile from "highlight.js/lib/languages/makefile";
import markdown from "highlight.js/lib/languages/markdown";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import ruby from "highlight.js/lib/languages/ruby";
import rust from "highlight.js/lib/languages/rust";
import sql from "highlight.js/lib/languages/sql";
import swift from "highlight.js/lib/languages/swift";
import typescript from "highlight.js/lib/languages/typescript";
import xml from "highlight.js/lib/languages/xml";
import yaml from "highlight.js/lib/languages/yaml";
import { Marked } from "marked";

const LANGUAGES = {
  bash, c, cpp, csharp, css, diff, dockerfile, go, ini, java, javascript, json, kotlin, makefile, markdown, php, python, ruby, rust,
  sql, swift, typescript, xml, yaml,
};
for (const [name, language] of Object.entries(LANGUAGES)) hljs.registerLanguage(name, language);
hljs.registerAliases(["console", "shell", "shell-session"], { languageName: "bash" });

// Colouring is for reading: what is longer than anybody reads stays plain.
const MAX_COLOURED = 50_000;
const PLAIN_ATTRIBUTES = ["align", "aria-label", "class", "rel", "role", "start", "tabindex", "target"];
const PURE = {
  ALLOWED_TAGS: ["a", "b", "blockquote", "br", "code", "del", "div", "em", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol",
    "p", "pre", "span", "strong", "table", "tbody", "td", "th", "thead", "tr", "ul"],
  ALLOWED_ATTR: ["href", ...PLAIN_ATTRIBUTES],
  ADD_URI_SAFE_ATTR: PLAIN_ATTRIBUTES,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

let above: number[] = []; // the depths of the headings that the next one is below
const marked = new Marked({
  gfm: true, breaks: true,
  renderer: {
    // HTML that a model writes is shown, not used.
    html: ({ text }) => escaped(text),
    // Fetching an image would tell its server what was said here.
    image: ({ href, text }) => link(href, escaped(text || href)),
    link({ href, tokens }) { return link(href, this.parser.parseInline(tokens)); },
    heading({ tokens, depth }) {
      // Levels below that of the conversation's title, with none left out.
      above = [...above.filter((each) => each < depth), depth];
      const level = Math.min(6, above.length + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    code: ({ text, lang }) => `<pre tabindex="0" role="region" aria-label="Code"><code>${coloured(text, (lang ?? "").split(/\s/)[0])}</code></pre>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
  },
});

export function toHtml(text: string): string {
  above = [];
  const html = (marked.parse(text) as string).replaceAll("<table>", '<div class="table" tabindex="0" role="region" aria-label="Table"><table>')
    .replaceAll("</table>", "</table></div>");
  return DOMPurify.sanitize(html, PURE);
}

/** Code as HTML with colours, if the language is known, and with a part of it marked. */
export function codeHtml(code: string, language: string, marked: [number, number] | null = null): string {
  const html = coloured(code, language);
  return DOMPurify.sanitize(marked ? withMark(html, marked) : html, PURE);
}

/** A mark inside of every element that it goes through: elements do not overlap. */
function withMark(html: string, [start, end]: [number, number]): string {
  let at = 0;
  return html.replace(/(<[^>]*>)|(&[^;]+;|[^<&])/g, (_, tag: string | undefined, sign: string) => {
    if (tag) return tag;
    const isMarked = at >= start && at < end;
    at++; // an escape is one character of the text
    return isMarked ? `<b class="word">${sign}</b>` : sign;
  }).replaceAll('</b><b class="word">', "");
}

function coloured(code: string, language: string): string {
  if (!hljs.getLanguage(language) || code.length > MAX_COLOURED) return escaped(code);
  return hljs.highlight(code, { language, ignoreIllegals: true }).value;
}

function link(href: string, inner: string): string {
  return `<a href="${escaped(href)}" target="_blank" rel="noopener noreferrer">${inner}</a>`;
}

function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
}
