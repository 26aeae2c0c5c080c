import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni watch` */
export const WATCH = defineCommand({
  name: 'watch',
  summary: 'follow what changes in the kernel and what the agent does',
  description: `Prints a line for each change of links, addresses, routes, rules, neighbours and nftables of the node as it
comes, and for each ADD, DEL, repair and other event of the agent, until Ctrl-C.

A line has the time (UTC), '*' for a kernel object of ours or 'A' for the agent, '+' came, '-' went, '~' changed or
'!' failed, the kind, the Pod or ENI that owns it, and the thing as ip prints it. A change of an object of ours without an event of
the agent is what to look for: another program removes it, and the agent's repair follows.

Without an agent it shows the kernel's changes only, and adds the agent's events when the agent starts.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni watch', does: 'follows everything' },
    { line: 'tke-eni watch --pod default/web-0', does: 'follows one Pod through ADD, repair and DEL' },
    { line: 'tke-eni watch --kind rule --kind route -o json', does: 'one JSON document for each change of routing' },
  ],
  needs: 'root for nftables, the agent’s events and the names of Pods; the rest works without',
  load: () => import('./run-watch.ts'),
});
