// Building blocks for the document. Text always goes in as text nodes: no string of the run is ever parsed as HTML.

const SVG_NAMESPACE = 'http://www.w3.org/2000/svg';

function applyProperty(node, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
  else if (name === 'text') node.textContent = value;
  else node.setAttribute(name, value === true ? '' : String(value));
}

function build(node, properties, children) {
  for (const [name, value] of Object.entries(properties || {})) applyProperty(node, name, value);
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function element(tag, properties, ...children) {
  return build(document.createElement(tag), properties, children);
}

function shape(tag, properties, ...children) {
  return build(document.createElementNS(SVG_NAMESPACE, tag), properties, children);
}

function replaceContent(node, ...children) {
  node.replaceChildren(...children.flat().filter(Boolean));
  return node;
}

// A file's name may hold anything but NUL and '/': what could reorder, break or hide text is shown as its code point,
// as `visible` of views/charts/words.py does it (tests/shared/test_hidden_characters.py compares both).
const UNSAFE_TO_SHOW = /[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

const SHORT_ESCAPES = { '\n': '\\n', '\t': '\\t', '\r': '\\r', ' ': ' ', '\u3000': '\u3000' };

function escapedCharacter(character) {
  if (SHORT_ESCAPES[character]) return SHORT_ESCAPES[character];
  const code = character.codePointAt(0), digits = code.toString(16);
  if (code < 0x100) return '\\x' + digits.padStart(2, '0');
  return code < 0x10000 ? '\\u' + digits.padStart(4, '0') : '\\U' + digits.padStart(8, '0');
}

function visibleName(name) {
  return name.replace(UNSAFE_TO_SHOW, escapedCharacter);
}

function shortened(name, limit) {
  const characters = Array.from(name);
  if (characters.length <= limit) return name;
  const tail = Math.ceil(limit * 0.6);
  return characters.slice(0, limit - tail - 1).join('') + '…' + characters.slice(-tail).join('');
}

function nameNode(name, limit) {
  const shown = visibleName(name);
  const pieces = shortened(shown, limit || 72).split('/');
  const content = pieces.flatMap((piece, index) => (index ? ['/', element('wbr'), piece] : [piece]));
  return element('bdi', { class: 'name', title: shown, translate: 'no' }, content);
}

// For commands to copy: a name as one word of the shell, whatever it holds.
function shellWord(name) {
  if (/^[\w@%+=:,./-]+$/.test(name)) return name;
  if (visibleName(name) === name) return "'" + name.replaceAll("'", "'\\''") + "'";
  return "$'" + name.replace(/[\\']/g, '\\$&').replace(UNSAFE_TO_SHOW, escapedCharacter) + "'";
}
