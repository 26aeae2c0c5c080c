/** Finds boxes by all that is written on them and behind them. */
import { boxes, page, results, search } from './page-data.js';
import { make, select } from './panel.js';

const SHOWN_RESULTS = 40;

const haystacks = page.nodes.map((node) =>
  [node.title, ...node.lines, ...node.facts.flatMap(({ rows }) => (node.kind === 'table' ? [] : rows))]
    .join('\n')
    .toLowerCase(),
);

function find(words) {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== '');
  return wanted.length === 0
    ? []
    : page.nodes.flatMap((_, index) => (wanted.every((word) => haystacks[index].includes(word)) ? [index] : []));
}

export function searchNow() {
  const found = find(search.value);
  // What is called so comes before what merely mentions it.
  const first = search.value.trim().toLowerCase();
  const rank = (index) => Number(!page.nodes[index].title.toLowerCase().includes(first));
  found.sort((a, b) => rank(a) - rank(b));
  for (const [index, box] of boxes.entries()) box?.classList.toggle('is-found', found.includes(index));
  results.replaceChildren(
    ...found.slice(0, SHOWN_RESULTS).map((index) => {
      const node = page.nodes[index];
      const open = () => {
        results.hidden = true;
        select(index);
      };
      return make(
        'li',
        {},
        make(
          'button',
          { type: 'button', onclick: open },
          node.title,
          ' ',
          make('small', {}, `${page.kinds[node.kind]} · ${node.lines[0] ?? ''}`),
        ),
      );
    }),
    ...(search.value.trim() !== '' && found.length === 0 ? [make('li', {}, 'Nothing of that name here.')] : []),
    ...(found.length > SHOWN_RESULTS ? [make('li', {}, `${found.length - SHOWN_RESULTS} more`)] : []),
  );
  results.hidden = search.value.trim() === '';
}

export function clearSearch() {
  search.value = '';
  searchNow();
}
