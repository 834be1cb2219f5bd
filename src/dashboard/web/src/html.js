// Pages are functions from data to HTML text; what is on screen is then changed only where the text differs. So focus,
// selection, opened <details> and scroll positions outlive every update.

class Html {
  /** @param {string} text */
  constructor(text) { this.text = text; }
}

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' };

/** @param {unknown} value */
function show(value) {
  if (value instanceof Html) return value.text;
  if (Array.isArray(value)) return value.map(show).join('');
  if (value === undefined || value === null || value === false) return '';
  return String(value).replace(/[&<>"']/g, (c) => ENTITIES[c]);
}

/** Per template, as all of its uses share one array: line breaks in a template are layout of the source, not text. */
const compacted = new WeakMap();

/**
 * Everything put in is escaped unless it is itself Html, so no name or message of a cluster can become markup.
 * @returns {Html}
 */
export function html(parts, ...values) {
  let compact = compacted.get(parts);
  if (!compact) compacted.set(parts, (compact = parts.map((p) => p.replace(/\n\s*/g, ''))));
  let text = compact[0];
  for (let i = 0; i < values.length; i++) text += show(values[i]) + compact[i + 1];
  return new Html(text);
}

/** Text in which `a command` is shown as code. */
export function prose(text) {
  return String(text ?? '').split('`').map((part, i) => (i % 2 ? html`<code>${part}</code>` : part));
}

/** @param {string} text */
function parse(text) {
  const template = document.createElement('template');
  template.innerHTML = text;
  return template.content;
}

const keyOf = (node) => node.dataset?.key;

/** Makes `live` like `next`. Children of a [data-own] element belong to whoever made them. */
function morph(live, next) {
  if (live.nodeType !== Node.ELEMENT_NODE) {
    if (live.data !== next.data) live.data = next.data;
    return;
  }
  for (const { name } of [...live.attributes]) {
    if (!next.hasAttribute(name) && name !== 'open') live.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (live.getAttribute(name) !== value) live.setAttribute(name, value);
  }
  if (!live.hasAttribute('data-own')) morphChildren(live, next);
}

function morphChildren(live, next) {
  const keyed = new Map();
  for (const child of live.children) if (keyOf(child) !== undefined) keyed.set(keyOf(child), child);
  let at = live.firstChild;
  for (const wanted of [...next.childNodes]) {
    const key = keyOf(wanted);
    let match = key === undefined ? at : keyed.get(key);
    if (match && (match.nodeName !== wanted.nodeName || keyOf(match) !== key)) match = undefined;
    if (!match) {
      live.insertBefore(wanted, at);
    } else {
      if (match === at) at = at.nextSibling;
      else live.insertBefore(match, at);
      morph(match, wanted);
    }
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

const drawn = new WeakMap();

/** Makes `element`'s content the given one; nothing is done when it is. */
export function put(element, content) {
  const text = show(content);
  if (drawn.get(element) === text) return;
  drawn.set(element, text);
  morphChildren(element, parse(text));
}

/**
 * A long list: each item is one element, whose text is compared before anything is parsed, and all that is new is parsed
 * in one go.
 * @param {Element} parent
 */
export function makeList(parent) {
  /** @type {Map<string, {text: string, element: Element}>} */
  let rows = new Map();
  /**
   * @template T
   * @param {T[]} items
   * @param {(item: T) => string} key
   * @param {(item: T) => Html} row
   */
  return (items, key, row) => {
    const next = new Map();
    const changed = [];
    for (const item of items) {
      const k = key(item);
      const { text } = row(item);
      const old = rows.get(k);
      const entry = old?.text === text ? old : { text, element: old?.element };
      if (entry !== old) changed.push(entry);
      next.set(k, entry);
    }
    const fresh = [...parse(changed.map((entry) => entry.text).join('')).children];
    changed.forEach((entry, i) => {
      if (entry.element) morph(entry.element, fresh[i]);
      else entry.element = fresh[i];
    });
    for (const [k, { element }] of rows) if (!next.has(k)) element.remove();
    rows = next;
    let at = parent.firstElementChild;
    for (const { element } of next.values()) {
      if (element === at) at = at.nextElementSibling;
      else parent.insertBefore(element, at);
    }
  };
}
