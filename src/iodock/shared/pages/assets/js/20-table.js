// A table with sortable columns. Its body is one tab stop: arrow keys, Home, End and Page keys go from row to row.

function columnLabel(name) {
  return Object.hasOwn(TEXT.columns, name) ? TEXT.columns[name] : name;
}

function valueText(column, value) {
  const words = TEXT.values[column] || {};
  return Object.hasOwn(words, value) ? words[value] : null;
}

function cellContent(kind, value, column) {
  if (value === null || value === undefined) return element('span', { class: 'unknown', title: gettext('not known'), text: '–' });
  if (kind === 'file') return nameNode(NAMES[value]);
  const word = kind === 'text' ? valueText(column, value) : null;
  if (word !== null) return element('span', { text: word });
  const [shown, exact] = SHOWN[kind](value);
  return kind === 'text'
    ? element('bdi', { title: exact, text: shortened(shown, 60) })
    : element('span', { title: exact, text: shown });
}

// The bar behind the sorting measure: a picture of the number beside it, so hidden from screen readers.
function shareBar(share) {
  const bar = element('span', { class: 'bar', 'aria-hidden': 'true' });
  bar.style.setProperty('--share', Math.max(0, Math.min(1, share || 0)).toFixed(4));
  return bar;
}

function compareValues(a, b, kind) {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  if (kind === 'file') return NAMES[a] < NAMES[b] ? -1 : NAMES[a] > NAMES[b] ? 1 : 0;
  return a < b ? -1 : a > b ? 1 : 0;
}

class Table {
  // options: caption, unit(n) (N rows in words, for 'N of M'), open(row) for drill-down, bar (column drawn as bars),
  // sort (column, descending first), limit (rows before 'show all'), row(tr, row, table) to dress a row
  constructor(data, options) {
    this.data = data;
    this.options = options;
    this.kinds = data.columns.map(columnKind);
    this.rows = data.rows;
    this.sortColumn = options.sort ? data.columns.indexOf(options.sort) : -1;
    this.descending = true;
    this.matches = null;
    this.limit = options.limit || Infinity;
    this.note = element('span', { class: 'caption-note' });
    this.more = element('button', { type: 'button', class: 'quiet more no-print', onclick: () => this.showAll() });
    this.body = element('tbody', { onkeydown: (event) => this.moveByKey(event) });
    this.node = this.frame();
    this.fillBody();
  }

  frame() {
    const table = element('table', {}, element('caption', {}, this.caption()), this.header(), this.body, this.footer());
    const label = this.options.label || this.options.caption;
    const frame = element('div', { class: 'table-frame', role: 'group', 'aria-label': label }, table);
    return element('div', { class: 'table-block' }, frame, this.leftOut(), this.more);
  }

  leftOut() {
    const count = this.data.columns.filter((name) => TEXT.minor.includes(name)).length;
    const said = ngettext('{n} column needs a wider screen', '{n} columns need a wider screen', count);
    return count ? element('p', { class: 'note narrow-only', text: said }) : null;
  }

  caption() {
    return [element('span', { class: 'caption-title', text: this.options.caption }), this.note];
  }

  countNote(shown) {
    const of = this.data.of;
    if (of === undefined || of === null || !this.options.unit) return '';
    return shown < of
      ? gettext('{shown} of {of} shown', { shown: grouped(shown), of: this.options.unit(of) })
      : this.options.unit(of);
  }

  header() {
    this.headers = this.data.columns.map((name, index) => {
      const arrow = element('span', { class: 'arrow', 'aria-hidden': 'true' });
      const numeric = isNumeric(this.kinds[index]);
      const content = numeric ? [arrow, columnLabel(name)] : [columnLabel(name), arrow];
      const button = element('button', { type: 'button', class: 'sort', onclick: () => this.sortBy(index) }, content);
      return element('th', { scope: 'col', title: TEXT.columnDocs[name], class: this.classes(index, 'sorts') }, button);
    });
    return element('thead', {}, element('tr', {}, this.headers));
  }

  // The columns that matter least are `minor`: a narrow screen leaves them out.
  classes(index, more = '') {
    const kind = isNumeric(this.kinds[index]) ? 'number' : this.kinds[index];
    const minor = TEXT.minor.includes(this.data.columns[index]) ? 'minor' : '';
    return [kind, minor, more].filter(Boolean).join(' ');
  }

  sortBy(index) {
    const again = this.sortColumn === index;
    this.descending = again ? !this.descending : isNumeric(this.kinds[index]);
    this.sortColumn = index;
    this.fillBody();
  }

  sorted() {
    const rows = this.matches ? this.rows.filter(this.matches) : this.rows.slice();
    const index = this.sortColumn;
    if (index < 0) return rows;
    const kind = this.kinds[index];
    const sign = this.descending ? -1 : 1;
    return rows.sort((a, b) => {
      const unknown = (a[index] === null) - (b[index] === null);
      return unknown || sign * compareValues(a[index], b[index], kind);
    });
  }

  filter(matches) {
    this.matches = matches;
    this.fillBody();
    return this.body.rows.length;
  }

  fillBody() {
    this.headers.forEach((header, index) => {
      if (index === this.sortColumn) header.setAttribute('aria-sort', this.descending ? 'descending' : 'ascending');
      else header.removeAttribute('aria-sort');
    });
    const barColumn = this.data.columns.indexOf(this.options.bar || '');
    this.largest = barColumn < 0 ? 0 : Math.max(0, ...this.rows.map((row) => row[barColumn] || 0));
    const sorted = this.sorted();
    const shown = this.matches ? sorted : sorted.slice(0, this.limit);
    replaceContent(this.body, shown.map((row) => this.bodyRow(row, barColumn)));
    this.note.textContent = this.countNote(shown.length);
    this.more.textContent = gettext('Show all {n} listed', { n: grouped(sorted.length) });
    this.more.hidden = shown.length === sorted.length;
    const first = this.stops()[0];
    if (first) first.tabIndex = 0;
  }

  showAll() {
    const from = this.limit;
    this.limit = Infinity;
    this.fillBody();
    const next = this.stops()[from];
    if (next) next.focus();
  }

  bodyRow(row, barColumn) {
    const cells = row.slice(0, this.data.columns.length).map((value, index) => {
      const kind = this.kinds[index];
      const content = cellContent(kind, value, this.data.columns[index]);
      if (index === 0) return element('th', { scope: 'row', class: kind === 'file' ? 'file' : 'word' }, this.opener(row, content));
      const bar = index === barColumn && this.largest > 0 ? shareBar(value / this.largest) : null;
      return element('td', { class: this.classes(index) }, bar, content);
    });
    const node = element('tr', this.options.open ? {} : { class: 'stop', tabindex: '-1' }, cells);
    if (this.options.row) this.options.row(node, row, this);
    return node;
  }

  opener(row, content) {
    if (!this.options.open) return content;
    return element('button', { type: 'button', class: 'open stop', tabindex: '-1', onclick: () => this.options.open(row) }, content);
  }

  footer() {
    const foot = element('tfoot');
    const rows = [['other', gettext('not listed'), this.data.other], ['total', gettext('total'), this.data.total]];
    for (const [key, label, values] of rows) {
      if (values) foot.append(this.footRow(key, label, values));
    }
    return foot;
  }

  footRow(key, label, values) {
    const cells = values.slice(1).map((value, index) => {
      const kind = this.kinds[index + 1];
      const content = value === null && !isNumeric(kind) ? null : cellContent(kind, value, null);
      return element('td', { class: this.classes(index + 1, isNumeric(kind) ? '' : 'word') }, content);
    });
    return element('tr', { class: key }, element('th', { scope: 'row', class: 'word', text: label }), cells);
  }

  stops() {
    return Array.from(this.body.querySelectorAll('.stop'));
  }

  moveByKey(event) {
    const stops = this.stops();
    const at = stops.indexOf(document.activeElement);
    if (at < 0) return;
    const steps = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: stops.length - 1, PageDown: at + 10, PageUp: at - 10 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = stops[Math.max(0, Math.min(stops.length - 1, steps[event.key]))];
    stops[at].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
}
