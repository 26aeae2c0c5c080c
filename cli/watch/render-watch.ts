import { timeText } from '../agent/duration-text.ts';
import { plainText } from '../output/cell-text.ts';
import { type Color, paint } from '../output/color.ts';
import type { WatchEvent, WatchOwner } from './watch-event.ts';

/** The longest kinds: 'address', 'conflict'. */
const KIND_WIDTH = 8;
/** Of a Pod's name; longer ones push the rest of their line. */
const OWNER_WIDTH = 22;

const COLORS = { '+': 'green', '-': 'red', '~': 'yellow', ok: undefined, failed: 'red' } as const satisfies Readonly<
  Record<WatchEvent['change'], Color | undefined>
>;

/**
 * Renders an event in a line: time (UTC), '*' for what is ours, what happened, kind, owner, what it is about; then a line
 * for each kernel operation that the agent tells of. Nothing is cut: what scrolls by cannot be asked for again. Pure.
 */
export function renderWatchEvent(event: WatchEvent, isColored: boolean): string {
  const { atMs, source, kind, change, text, isOurs, owner, operations = [] } = event;
  const mark = source === 'agent' ? 'A' : isOurs ? '*' : ' ';
  const what = `${CHANGE_TEXT[change]} ${kind.padEnd(KIND_WIDTH)}`;
  const line = [
    paint(timeText(atMs), 'dim', isColored),
    paint(mark, 'cyan', isColored),
    paint(what, kind === 'lost' ? 'red' : COLORS[change], isColored),
    plainText(ownerText(owner)).padEnd(OWNER_WIDTH),
    plainText(text),
  ].join(' ');
  const done = operations.map((operation) => paint(`               ${plainText(operation)}`, 'dim', isColored));
  return `${[line, ...done].join('\n')}\n`;
}

const CHANGE_TEXT = { '+': '+', '-': '-', '~': '~', ok: ' ', failed: '!' } as const;

/** Names an owner for people; '-' when nobody of ours owns it. Pure. */
export function ownerText(owner: WatchOwner | undefined): string {
  switch (owner?.kind) {
    case 'pod':
      return owner.name;
    case 'eni':
      return owner.ifname === '' ? owner.eniId : `${owner.eniId} (${owner.ifname})`;
    case 'node':
      return 'node';
    case undefined:
      return '-';
  }
}
