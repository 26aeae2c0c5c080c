import { defineCommand, NO_ARGUMENTS } from '../../command/command.ts';
import { OPTIONS } from './arguments.ts';

/** `tke-eni doctor` */
export const DOCTOR = defineCommand({
  name: 'doctor',
  summary: 'look for what disturbs the network of Pods on this node',
  description: `Looks at the agent and what it keeps, at ENIs, Pods' interfaces, rules, tables and nftables, and at what else runs on the node: systemd-networkd, NetworkManager, cloud-init, DHCP clients, udev, iptables, kube-proxy, marks of other programs, settings now and at boot, limits of the kernel. Changes nothing and asks no cluster.

Each finding says what is so, why it matters and what cures it; docs/reference/findings.md has them all. A check that cannot be made, or that has nothing to look at here, is shown as skipped, with the reason. Other conditions than the usual may be wanted: --skip takes ids of checks and of findings.`,
  positionals: NO_ARGUMENTS,
  options: OPTIONS,
  examples: [
    { line: 'tke-eni doctor', does: 'says what is wrong and what cures it' },
    { line: 'tke-eni doctor -o wide', does: 'says what each check saw, too' },
    { line: 'tke-eni doctor --only rp-filter,marks', does: 'makes two checks' },
    { line: 'tke-eni doctor --skip networkd -o json | jq .findings', does: 'leaves one out, for programs' },
  ],
  wrongMeans: 'there is a finding of severity error',
  needs: 'root: to read the journal, nftables, iptables and the inside of Pods; what cannot be read is skipped',
  load: () => import('./run-doctor.ts'),
});
