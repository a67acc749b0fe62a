/**
 * The editor itself, in a chunk of its own. It lives in a shadow root: there CodeMirror puts its style into `adoptedStyleSheets`, which
 * the content policy allows, and not into a style element, which it does not.
 */
import { acceptCompletion, autocompletion, closeBrackets, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { EditorState, RangeSetBuilder, StateEffect, StateField, type Text } from "@codemirror/state";
import { Decoration, EditorView, WidgetType, drawSelection, highlightActiveLine, keymap, lineNumbers, type DecorationSet } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { t } from "../i18n";
import { offers, wordsAt } from "./complete";
import type { RuleProblem } from "./problems";
import { read, start, type Place } from "./tokens";
import { isCollection } from "./words";

/** What a page holds of an editor. */
export interface Handle {
  /** Takes another text, unless it is the one that is there. */
  setText: (text: string) => void;
  setProblems: (problems: RuleProblem[]) => void;
  /** Puts the cursor at a place and the focus into the editor. */
  goTo: (position: number) => void;
  focus: () => void;
  destroy: () => void;
}

const language = StreamLanguage.define<Place>({
  name: "seclang",
  startState: start,
  copyState: (place) => ({ ...place }),
  token: read,
  blankLine: (place) => void Object.assign(place, start()),
  languageData: { commentTokens: { line: "#" }, closeBrackets: { brackets: ['"'] } },
});

const colours = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--sl-directive)", fontWeight: "600" },
  { tag: tags.variableName, color: "var(--sl-variable)" },
  { tag: tags.propertyName, color: "var(--sl-member)" },
  { tag: [tags.operatorKeyword, tags.operator], color: "var(--sl-operator)" },
  { tag: tags.attributeName, color: "var(--sl-action)" },
  { tag: tags.typeName, color: "var(--sl-transformation)" },
  { tag: [tags.string, tags.regexp], color: "var(--sl-text)" },
  { tag: tags.number, color: "var(--sl-member)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.meta, tags.punctuation], color: "var(--muted)" },
  { tag: tags.invalid, color: "var(--bad)", textDecoration: "underline wavy" },
]);

const theme = EditorView.theme({
  "&": { color: "var(--ink)", backgroundColor: "var(--surface)", border: "1px solid var(--control)", borderRadius: "6px", fontSize: "0.9rem", minHeight: "var(--editor-height)" },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "2px" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", minHeight: "var(--editor-height)", maxHeight: "70vh" },
  ".cm-content": { caretColor: "var(--ink)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--muted)", border: "none", borderRadius: "6px 0 0 6px" },
  ".cm-activeLine": { backgroundColor: "color-mix(in oklab, var(--raised) 60%, transparent)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--mark)" },
  ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--surface)", border: "1px solid var(--control)", borderRadius: "6px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxWidth: "min(640px, 90vw)" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px", whiteSpace: "nowrap", overflow: "hidden", textOverflow: "ellipsis" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--info-bg)", color: "var(--ink)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700", color: "var(--accent)" },
  ".cm-completionDetail": { fontStyle: "normal", fontFamily: "system-ui, sans-serif", color: "var(--muted)" },
  ".cm-problem": { display: "block", margin: "0 0 2px", padding: "2px 10px", whiteSpace: "pre-wrap", overflowWrap: "anywhere", fontFamily: "system-ui, sans-serif", fontSize: "0.87rem", color: "var(--bad)", backgroundColor: "var(--bad-bg)", borderLeft: "3px solid var(--bad)" },
});

class ProblemWidget extends WidgetType {
  constructor(readonly message: string) {
    super();
  }
  override eq(other: ProblemWidget): boolean {
    return other.message === this.message;
  }
  override toDOM(): HTMLElement {
    const element = document.createElement("div");
    element.className = "cm-problem";
    element.textContent = this.message;
    return element;
  }
}

const setShown = StateEffect.define<RuleProblem[]>();
/** The messages below their lines. */
const shownProblems = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(shown, transaction) {
    let next = shown.map(transaction.changes);
    for (const effect of transaction.effects) if (effect.is(setShown)) next = decorate(effect.value, transaction.state.doc);
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

function decorate(problems: RuleProblem[], doc: Text): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { line, message } of [...problems].sort((a, b) => a.line - b.line)) {
    if (line > doc.lines) continue;
    const at = doc.line(line).to;
    builder.add(at, at, Decoration.widget({ widget: new ProblemWidget(message), block: true, side: 1 }));
  }
  return builder.finish();
}

/** Where the directive begins that the cursor is in: lines above that end in a backslash belong to it. */
function directiveStart(doc: Text, position: number): number {
  let number = doc.lineAt(position).number;
  while (number > 1 && doc.line(number - 1).text.endsWith("\\")) number -= 1;
  return doc.line(number).from;
}

function complete(context: CompletionContext): CompletionResult | null {
  const { doc } = context.state;
  const found = wordsAt(doc.sliceString(directiveStart(doc, context.pos), context.pos));
  if (!found || (!found.typed && !context.explicit && found.kind === "directives")) return null;
  const type = { directives: "keyword", variables: "variable", operators: "function", transformations: "type", actions: "property", controls: "property" }[found.kind];
  return {
    from: context.pos - found.typed.length,
    validFor: /^\w*$/,
    options: offers(found.kind).map(([label, detail]) => ({ label, detail: ` ${detail}`, type, ...(found.kind === "variables" && isCollection(label) ? { commitCharacters: [":"] } : {}) })),
  };
}

/** Makes an editor in a shadow root. `described` is the id of an element in that root. */
export function create(root: ShadowRoot, parent: HTMLElement, options: { text: string; label: string; described: string; onChange: (text: string) => void }): Handle {
  let silent = false;
  const view = new EditorView({
    root,
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), closeBrackets(), language, syntaxHighlighting(colours), theme, shownProblems,
        autocompletion({ override: [complete], icons: false, maxRenderedOptions: 150 }),
        keymap.of([...completionKeymap, { key: "Tab", run: acceptCompletion }, indentWithTab, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": options.label, "aria-describedby": options.described, spellcheck: "false", autocapitalize: "off" }),
        EditorView.contentAttributes.of((view) => ({ "aria-invalid": String((view.state.field(shownProblems, false)?.size ?? 0) > 0) })),
        EditorView.domEventHandlers({
          // A browser that types over a selection keeps its colours in a style attribute, which the content policy reports.
          beforeinput(event, view) {
            const typed = event.inputType === "insertText" || event.inputType === "insertReplacementText" ? event.data : null;
            if (!typed || typed === '"' || view.composing || view.state.selection.main.empty) return false;
            view.dispatch(view.state.replaceSelection(typed), { userEvent: "input.type", scrollIntoView: true });
            return true;
          },
        }),
        // Escape lets the next Tab leave, also where it closes a list or drops a selection.
        EditorView.domEventObservers({ keydown: (event, view) => void (event.key === "Escape" && view.setTabFocusMode(2000)) }),
        EditorState.phrases.of({ Completions: t("rules.completions"), Diagnostics: t("rules.problems") }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !silent) options.onChange(update.state.doc.toString());
          // The list of completions scrolls: the arrow keys of the text move in it, and so it can be reached as well.
          for (const list of update.view.dom.querySelectorAll<HTMLElement>("ul[role=listbox]")) list.tabIndex = 0;
        }),
      ],
    }),
  });
  return {
    setText(text) {
      if (text === view.state.doc.toString()) return;
      silent = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      silent = false;
    },
    setProblems(problems) {
      const { length } = view.state.doc;
      const there = problems.filter(({ from }) => from <= length);
      view.dispatch(setDiagnostics(view.state, there.map(({ from, to, message }) => ({ from, to: Math.min(to, length), severity: "error", message }))));
      view.dispatch({ effects: setShown.of(there) });
    },
    goTo(position) {
      view.dispatch({ selection: { anchor: Math.min(position, view.state.doc.length) }, scrollIntoView: true });
      view.focus();
    },
    focus: () => view.focus(),
    destroy: () => view.destroy(),
  };
}
