import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { PODS_POSITIONALS } from './arguments.ts';
import { OUTPUT_OPTION } from './output-option.ts';

const NEEDS = 'root: the agent’s socket and its state folder are for root only';

/** `tke-eni pool` */
export const POOL = defineCommand({
  name: 'pool',
  summary: 'show how many addresses are in use, free, cooling or on their way back',
  description: `Shows the addresses for Pods of each ENI and family by what they do, how many the node keeps warm and asks
for, and the ADDs that wait for one.

in use: a Pod has it. free: it may be given now. kept: a static address whose Pod does not use it now. cooling: it rests
after its last owner. unready: no Pod has it, and its ENI serves no new Pod now. offered: the agent gives it back.
releasing: ipamd takes it back.

Asks the agent; when none answers, shows what its journal alone has, and reports that.`,
  positionals: NO_ARGUMENTS,
  options: OUTPUT_OPTION,
  examples: [
    { line: 'tke-eni pool', does: 'shows the levels of this node' },
    { line: 'tke-eni pool -o json | jq .waiting', does: 'lists the Pods that wait for an address' },
  ],
  needs: NEEDS,
  load: () => import('./run-pool.ts'),
});

/** `tke-eni enis` */
export const ENIS = defineCommand({
  name: 'enis',
  summary: 'show the ENIs that Pods share, and why each is not given back',
  description: `Shows each ENI with its link, routing table, mark slot, MAC, own addresses and subnets, how many of its
addresses are in use, and whether it serves new Pods; if not, why.

Below that, a line for each reason that an ENI is not given back to the cloud, as far as the node shows it. What the cluster's
objects show is in tke-eni cluster enis.`,
  positionals: NO_ARGUMENTS,
  options: OUTPUT_OPTION,
  examples: [
    { line: 'tke-eni enis -o wide', does: 'shows all columns, whatever the width' },
    { line: "tke-eni enis -o json | jq '.[] | {eniId, stays}'", does: 'shows why each ENI is not given back' },
  ],
  needs: NEEDS,
  load: () => import('./run-enis.ts'),
});

/** `tke-eni pods` */
export const PODS = defineCommand({
  name: 'pods',
  summary: 'show the Pods of this node that have an address of ours',
  description: `Shows each Pod interface with its addresses, ENI, host veth, sandbox and network namespace. Reads the agent's
journal and the kernel; works without an agent, and without a journal shows the state of the kernel.`,
  positionals: PODS_POSITIONALS,
  options: OUTPUT_OPTION,
  examples: [
    { line: 'tke-eni pods', does: 'lists all' },
    { line: 'tke-eni pods 10.0.1.5', does: 'shows which Pod has an address' },
  ],
  needs: NEEDS,
  load: () => import('./run-pods.ts'),
});
