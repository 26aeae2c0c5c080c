import { type ArgsOf, defineCommand } from '../command.ts';

const OPTIONS = {
  output: {
    type: 'string',
    alias: 'o',
    summary: 'how to print; wide has every check with what it saw',
    choices: ['table', 'wide', 'json', 'yaml'],
    default: 'table',
  },
  only: { type: 'strings', summary: 'only these checks or findings, separated by commas', metavar: 'ID' },
  skip: { type: 'strings', summary: 'all but these checks or findings', metavar: 'ID' },
  'cni-conf-dir': {
    type: 'string',
    summary: 'folder of CNI configuration on the host',
    metavar: 'DIR',
    default: '/etc/cni/net.d',
    completes: 'folder',
  },
  'cni-bin-dir': {
    type: 'string',
    summary: 'folder of CNI executables on the host',
    metavar: 'DIR',
    default: '/opt/cni/bin',
    completes: 'folder',
  },
} as const;

const NONE = {} as const;

/** Is what `doctor` gets. */
export type DoctorArgs = ArgsOf<typeof OPTIONS, typeof NONE>;

/** `tke-eni doctor` */
export const DOCTOR = defineCommand({
  name: 'doctor',
  summary: 'look for what disturbs the network of Pods on this node',
  description: `Looks at the agent and what it keeps, at ENIs, Pods' interfaces, rules, tables and nftables, and at what else runs on the node: systemd-networkd, NetworkManager, cloud-init, DHCP clients, udev, iptables, kube-proxy, marks of other programs, settings now and at boot, limits of the kernel. Changes nothing and asks no cluster.

Each finding says what is so, why it matters and what cures it; docs/reference/findings.md has them all. A check that cannot be made, or that has nothing to look at here, is told as skipped with the reason. Other conditions than the usual may be wanted: --skip takes ids of checks and of findings.`,
  positionals: NONE,
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
