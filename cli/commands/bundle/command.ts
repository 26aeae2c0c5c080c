import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni bundle` */
export const BUNDLE = defineCommand({
  name: 'bundle',
  summary: 'write a support archive of this node, secrets removed',
  description: `Writes a tar.gz with what helps to find a fault later: status, pool and flight recorder of the agent (the last
operations of each Pod), its recent events, its journal and node record decoded, diff, check, doctor, the explanation of
each broken Pod, the node drawn as a page (graph.html), dumps of routes, rules, links, addresses and neighbours (as tables, as JSON and as an ip script), the
nftables rule set, settings, CNI configuration, kernel and versions, and the end of our logs.

Every part is bounded in size and time. A part that cannot be read becomes an entry with the reason, and so does what this
machine does not have, such as nft; manifest.json lists them all. Passwords, keys, tokens, certificates, TENCENTCLOUD_* variables, credentials in URLs and long random words are
taken out of every part; of CNI configuration only fields that are known to be no secret stay. The file is readable by
its owner only, and is there as a whole or not at all. With -o - the archive is written to standard output, unless that is a
terminal: in the agent's container no file can be kept.

Addresses, names of Pods and of interfaces stay: without them it would be of no use. Check it before you send it.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni bundle', does: 'writes it into the current folder and prints its name' },
    { line: 'tke-eni bundle -o /tmp/node.tar.gz', does: 'writes it there' },
    { line: 'tke-eni bundle -o - > node.tar.gz', does: 'writes it to standard output, as kubectl exec needs it' },
  ],
  wrongMeans: 'it was written, and parts that this machine should have are missing in it',
  needs: 'root: nearly everything in it is for root only',
  load: () => import('./run-bundle.ts'),
});
