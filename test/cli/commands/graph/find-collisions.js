// Runs in the page: its value is a list of labels that overlap each other or stick out of their box.
(() => {
  const faults = [];
  // Measured at full size: of text that is scaled down the browser rounds each line up to whole pixels.
  const view = document.querySelector('#view');
  const place = view.getAttribute('transform');
  view.setAttribute('transform', 'scale(1)');
  // Lines of one box have their ascenders and descenders in each other's room.
  const allowed = 3;
  const texts = [...document.querySelectorAll('#drawing text')]
    .filter((text) => text.getClientRects().length > 0)
    .map((text) => ({ text, box: text.getBoundingClientRect() }))
    .sort((a, b) => a.box.left - b.box.left);
  if (texts.length < 20) faults.push(`only ${texts.length} labels are visible`);
  for (const [index, { text, box }] of texts.entries()) {
    const card = text.closest('.node')?.querySelector('.card').getBoundingClientRect();
    if (card && (box.right > card.right || box.left < card.left || box.top < card.top || box.bottom > card.bottom)) {
      faults.push(`${text.textContent} sticks out of its box`);
    }
    for (const other of texts.slice(index + 1)) {
      if (other.box.left >= box.right) break;
      const overlap = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
      if (overlap > allowed) faults.push(`${text.textContent} lies over ${other.text.textContent}`);
    }
  }
  view.setAttribute('transform', place);
  return faults;
})();
