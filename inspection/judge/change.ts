import type { LeaseKey } from '../../agent/journal/lease.ts';
import { type Operation, renderOperation } from '../../dataplane/operation.ts';
import { plainLines } from '../../runtime/plain-text.ts';

/** One change that repair would make, with its place. */
export type Change =
  | { readonly kind: 'host'; readonly operation: Operation }
  /** A change in the network namespace of a Pod. */
  | { readonly kind: 'pod'; readonly key: LeaseKey; readonly netns: string; readonly operation: Operation }
  /** Deletes the host interface of an attachment that no longer exists. */
  | { readonly kind: 'delete-veth'; readonly key: LeaseKey; readonly ifindex: number; readonly ifname: string };

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
