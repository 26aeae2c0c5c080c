import { renderOperation } from '../../../dataplane/operation.ts';
import { plainLines } from '../../../runtime/plain-text.ts';
import type { Change } from './change.ts';

/** Renders a change as the command that makes it by hand on the host: `ip …`, `sysctl …`, `nft …`, `nsenter … ip …`. */
export function renderChange(change: Change): string {
  return plainLines(commandOf(change));
}

function commandOf(change: Change): string {
  switch (change.kind) {
    case 'host':
      return renderOperation(change.operation);
    case 'pod':
      return `nsenter --net=${shellWord(change.netns)} -- ${renderOperation(change.operation)}`;
    case 'delete-veth':
      return `ip link del dev ${shellWord(change.ifname)}`;
  }
}

/** Quotes a word that a shell would expand or split: a link can be named `$(reboot)`. */
function shellWord(word: string): string {
  return /^[\w./:@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
