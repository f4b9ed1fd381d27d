for (const figure of document.querySelectorAll('figure[data-blocks]')) {
  const rows = JSON.parse(figure.dataset.blocks), texts = JSON.parse(figure.dataset.texts);
  const plot = figure.querySelector('.plot'), said = figure.querySelector('output');
  const rects = [...plot.querySelector('g > g').children];
  const frame = rects[0].cloneNode();
  frame.setAttribute('class', 'on');
  let at = 0;

  // A row is texts one after another, each a number of `texts`, and then the numbers that are left out there.
  const textsOf = row => {
    const found = [];
    for (let next = 0; next < row.length;) found.push(texts[row[next++]].replace(/\x01/g, () => row[next++]));
    return found;
  };
  const put = (tag, text) => {
    const made = document.createElement(tag);
    made.textContent = text;
    return made;
  };
  const show = index => {
    const [name, summary, ...known] = textsOf(rows[index]);
    for (const key of ['x', 'y', 'width', 'height']) frame.setAttribute(key, rects[index].getAttribute(key));
    plot.querySelector('g > g').after(frame);
    const list = document.createElement('dl');
    for (let next = 0; next < known.length; next += 2)
      list.append(put('dt', known[next] === known[next - 2] ? '' : known[next]), put('dd', known[next + 1]));
    said.replaceChildren(put('b', name), summary, list);
  };
  const go = index => {
    rects[at].tabIndex = -1;
    at = index;
    rects[at].tabIndex = 0;
    rects[at].focus();
  };

  // The nearest block above the one that has the focus, or below it, of those that are there at one time with it.
  const beside = way => {
    const side = rect => ['x', 'y', 'width', 'height'].map(key => rect[key].baseVal.value);
    const [x, y, width, height] = side(rects[at]);
    let best = at, distance = Infinity;
    rects.forEach((rect, index) => {
      const [left, top, across, down] = side(rect);
      const gap = way < 0 ? y - top - down : top - y - height;
      if (left < x + width - 0.01 && x < left + across - 0.01 && gap > -0.6 && gap < distance && index !== at)
        [best, distance] = [index, gap];
    });
    return best;
  };
  rects.forEach((rect, index) => {
    const [name, summary] = textsOf(rows[index]);
    rect.tabIndex = index ? -1 : 0;
    rect.setAttribute('role', 'img');
    rect.setAttribute('aria-label', `${name}, ${summary}`);
  });
  // Not on the drawing: browsers let the Tab key stop at a drawing that listens for the focus.
  figure.addEventListener('pointerover', event => {
    const index = rects.indexOf(event.target);
    if (index >= 0) show(index);
  });
  figure.addEventListener('focusin', event => {
    const index = rects.indexOf(event.target);
    if (index < 0) return;
    if (index !== at) go(index);
    show(index);
  });
  figure.addEventListener('keydown', event => {
    if (!rects.includes(event.target)) return;
    const last = rects.length - 1;
    const to = {
      ArrowRight: () => Math.min(at + 1, last), ArrowLeft: () => Math.max(at - 1, 0),
      ArrowUp: () => beside(-1), ArrowDown: () => beside(1), Home: () => 0, End: () => last,
    }[event.key];
    if (!to || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(to());
  });
}
