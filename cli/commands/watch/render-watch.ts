import { plainText } from '../../../runtime/plain-text.ts';
import { timeText } from '../../agent/duration-text.ts';
import { type Color, paint } from '../../output/color.ts';
import type { WatchEvent, WatchOwner } from './watch-event.ts';

/** Width of the column of kinds; the longest are 'address' and 'conflict'. */
const KIND_WIDTH = 8;
/** Width of the column of owners; a longer name shifts the rest of its line. */
const OWNER_WIDTH = 22;

const COLORS = { '+': 'green', '-': 'red', '~': 'yellow', ok: undefined, failed: 'red' } as const satisfies Readonly<
  Record<WatchEvent['change'], Color | undefined>
>;

/**
 * Renders an event as one line: time (UTC), '*' for objects of tke-eni, change, kind, owner, and the object. One more
 * line follows for each kernel operation that the agent reports. Nothing is cut: a line that has scrolled away cannot
 * be printed again.
 */
export function renderWatchEvent(event: WatchEvent, isColored: boolean): string {
  const { atMs, source, kind, change, text, isOurs, owner, by, operations = [] } = event;
  const mark = source === 'agent' ? 'A' : isOurs ? '*' : ' ';
  const what = `${CHANGE_TEXT[change]} ${kind.padEnd(KIND_WIDTH)}`;
  const line = [
    paint(timeText(atMs), 'dim', isColored),
    paint(mark, 'cyan', isColored),
    paint(what, kind === 'lost' ? 'red' : COLORS[change], isColored),
    plainText(ownerText(owner)).padEnd(OWNER_WIDTH),
    plainText(by === undefined ? text : `${text}, by ${by}`),
  ].join(' ');
  const done = operations.map((operation) => paint(`               ${plainText(operation)}`, 'dim', isColored));
  return `${[line, ...done].join('\n')}\n`;
}

const CHANGE_TEXT = { '+': '+', '-': '-', '~': '~', ok: ' ', failed: '!' } as const;

/** Formats an owner for people; '-' when the object belongs to no Pod or ENI. */
function ownerText(owner: WatchOwner | undefined): string {
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
