// Texts in the page's language, and numbers for people. Every shown number carries its exact value in its title.

function fill(template, values) {
  return template.replace(/\{(\w+)\}/g, (whole, key) => (values && key in values ? String(values[key]) : whole));
}

// Texts are English sentences, as in the Python code; the page holds the translations of those that stand here.
// They are written in single quotes without escapes, so that they can be found.
function gettext(text, values) {
  return fill(Object.hasOwn(TEXT.sentences, text) ? TEXT.sentences[text] : text, values);
}

function ngettext(one, many, count, values) {
  const forms = Object.hasOwn(TEXT.plurals, one) ? TEXT.plurals[one] : [one, many];
  return fill(forms[count === 1 ? 0 : 1], Object.assign({ n: grouped(count) }, values));
}

// Part of a text replaced by a node.
function gettextAround(translated, place, node) {
  const [before, after] = translated.split(place);
  return [before, node, after];
}

function grouped(number) {
  if (!Number.isInteger(number)) return significant(number);
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

function significant(number) {
  if (number === 0) return '0';
  const size = Math.abs(number);
  if (size >= 100) return grouped(Math.round(number));
  return Number(number.toPrecision(3)).toString();
}

function scaled(number, units, step) {
  let value = number;
  let unit = 0;
  while (Math.abs(value) >= step * 0.9995 && unit < units.length - 1) {
    value /= step;
    unit += 1;
  }
  const shown = unit === 0 ? grouped(Math.round(value)) : significant(value);
  return shown + ' ' + units[unit];
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

function bytesText(number) {
  return scaled(number, BYTE_UNITS, 1024);
}

// Seconds stay seconds up to ten hours: 7,200 s says more beside other seconds than 2 h.
function timeText(nanoseconds) {
  if (nanoseconds === 0) return '0 s';
  const size = Math.abs(nanoseconds);
  if (size >= 3.6e13) return significant(nanoseconds / 3.6e12) + ' h';
  if (size >= 1e9) return significant(nanoseconds / 1e9) + ' s';
  if (size >= 1e6) return significant(nanoseconds / 1e6) + ' ms';
  if (size >= 1e3) return significant(nanoseconds / 1e3) + ' µs';
  return grouped(Math.round(nanoseconds)) + ' ns';
}

function rateText(perSecond) {
  const number = perSecond >= 1e4 ? scaled(perSecond, ['', 'k', 'M', 'G'], 1000) : significant(perSecond);
  return number.replace(/ $/, '') + '/s';
}

function shareText(share) {
  const percent = share * 100;
  if (percent > 0 && percent < 0.1) return '<0.1 %';
  return (percent >= 10 ? percent.toFixed(0) : percent.toFixed(1)) + ' %';
}

// How a column is shown follows from its name: names carry their unit.
const KINDS_BY_NAME = {
  call: 'text', class: 'text', errno: 'text', kind: 'text', fs_type: 'text', pattern: 'text', how: 'text', exit: 'text',
  process: 'text', command: 'text', file: 'file', calls_per_s: 'rate', bytes_per_s: 'byterate', mount_point: 'text',
  family: 'text', host: 'text', access: 'text',
};

function columnKind(name) {
  if (KINDS_BY_NAME[name]) return KINDS_BY_NAME[name];
  if (name.endsWith('_ns')) return 'time';
  if (name.endsWith('_bytes')) return 'bytes';
  if (name.endsWith('_share')) return 'share';
  if (name === 'pid' || name === 'tid' || name === 'rank') return 'id';
  return 'count';
}

const SHOWN = {
  time: (v) => [timeText(v), grouped(v) + ' ns'],
  bytes: (v) => [bytesText(v), grouped(v) + ' B'],
  rate: (v) => [rateText(v), v + ' /s'],
  byterate: (v) => [bytesText(v) + '/s', v + ' B/s'],
  share: (v) => [shareText(v), String(v)],
  count: (v) => [grouped(v), grouped(v)],
  id: (v) => [String(v), String(v)],
  text: (v) => [visibleName(String(v)), visibleName(String(v))],
};

function isNumeric(kind) {
  return kind !== 'text' && kind !== 'file';
}
