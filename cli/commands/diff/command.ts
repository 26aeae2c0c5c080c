import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { CHECK_OPTIONS, CHECK_POSITIONALS, DIFF_OPTIONS } from './arguments.ts';

const NEEDS_ROOT = 'root: to read the journal and to look into Pods';

/** `tke-eni diff` */
export const DIFF = defineCommand({
  name: 'diff',
  summary: 'compare the node with what its agent recorded',
  description: `Plans the node again from journal and node record, by the rules of the agent, and compares the plan with the kernel: settings, links, addresses, routes, rules and nftables of the host, the inside of each Pod, links and addresses with two owners or none. Needs no running agent. What could not be compared is reported, never guessed.

With --nec the addresses are compared with the NodeENIConfig of this node as well, with --cloud with the ENIs as the cloud describes them.

With -o ip it prints the lines that would repair what is ours; \`tke-eni repair\` runs them.`,
  positionals: NO_ARGUMENTS,
  options: DIFF_OPTIONS,
  examples: [
    { line: 'tke-eni diff', does: 'shows what differs and what would repair it' },
    { line: 'tke-eni diff -o ip', does: 'prints the lines of the repair alone' },
    { line: 'tke-eni diff --nec -o json | jq .differences', does: 'compares with the cluster as well, for programs' },
  ],
  wrongMeans: 'something differs',
  needs: NEEDS_ROOT,
  load: () => import('./run-diff.ts'),
});

/** `tke-eni check` */
export const CHECK = defineCommand({
  name: 'check',
  summary: 'show in one line for each Pod and ENI whether it is as it should be',
  description: `Makes the comparison of \`tke-eni diff\` and sums it up: one line for the node, each ENI and each Pod. For probes and for a first look. With a Pod only that Pod, its ENI and the node are checked.`,
  positionals: CHECK_POSITIONALS,
  options: CHECK_OPTIONS,
  examples: [
    { line: 'tke-eni check', does: 'checks everything on this node' },
    { line: 'tke-eni check default/web-0', does: 'checks one Pod and what its packets need' },
    { line: 'tke-eni check --quiet', does: 'for a probe: exit code 0 or 1' },
  ],
  wrongMeans: 'something that was checked is wrong',
  needs: NEEDS_ROOT,
  load: () => import('./run-check.ts'),
});
