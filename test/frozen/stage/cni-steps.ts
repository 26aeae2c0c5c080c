import { containerIdOf } from './agent-stage.ts';

/** One call of an executable, as a runtime makes it. */
export type CniStep = {
  readonly name: string;
  readonly plugin: 'tke-route-eni' | 'tke-eni-ipamc' | 'tke-direct-eni';
  readonly command: 'ADD' | 'DEL' | 'CHECK' | 'STATUS' | 'GC';
  /** Name of the sandbox; none for STATUS and GC. */
  readonly pod?: string;
  /** What of the configuration is not the same in all calls. */
  readonly conf?: object;
  /** Name of a sandbox that ends before this step: garbage collection releases none that lives. */
  readonly ends?: string;
  /** The step whose result is this one's prevResult. */
  readonly after?: string;
};

const EVERY_KEY = {
  ...{ mtu: 1400, routeTable: 7, disableIPv6: true, timeoutMs: 30_000 },
  dns: { nameservers: ['10.96.0.10'], domain: 'svc', search: ['cluster.local'], options: ['ndots:5'] },
};
const VALID = [{ containerID: containerIdOf('cart-0'), ifname: 'eth0' }];

/** A sandbox that is not there. */
export const NO_SANDBOX = 'nowhere-0';

/** What is called, in this order, from a node without Pods to one without Pods. */
export const CNI_STEPS: readonly CniStep[] = [
  { name: 'status-route', plugin: 'tke-route-eni', command: 'STATUS' },
  { name: 'status-ipamc', plugin: 'tke-eni-ipamc', command: 'STATUS' },
  { name: 'status-direct', plugin: 'tke-direct-eni', command: 'STATUS' },
  { name: 'add-route', plugin: 'tke-route-eni', command: 'ADD', pod: 'cart-0', conf: EVERY_KEY },
  { name: 'add-route-dual', plugin: 'tke-route-eni', command: 'ADD', pod: 'till-0' },
  {
    name: 'check-route',
    plugin: 'tke-route-eni',
    command: 'CHECK',
    pod: 'cart-0',
    conf: EVERY_KEY,
    after: 'add-route',
  },
  { name: 'add-ipamc', plugin: 'tke-eni-ipamc', command: 'ADD', pod: 'ledger-0' },
  { name: 'check-ipamc', plugin: 'tke-eni-ipamc', command: 'CHECK', pod: 'ledger-0', after: 'add-ipamc' },
  { name: 'add-direct', plugin: 'tke-direct-eni', command: 'ADD', pod: 'db-0' },
  { name: 'check-direct', plugin: 'tke-direct-eni', command: 'CHECK', pod: 'db-0', after: 'add-direct' },
  { name: 'add-without-netns', plugin: 'tke-route-eni', command: 'ADD', pod: NO_SANDBOX },
  {
    name: 'gc',
    plugin: 'tke-route-eni',
    command: 'GC',
    conf: { 'cni.dev/valid-attachments': VALID },
    ends: 'till-0',
  },
  { name: 'check-collected', plugin: 'tke-route-eni', command: 'CHECK', pod: 'till-0', after: 'add-route-dual' },
  { name: 'del-route', plugin: 'tke-route-eni', command: 'DEL', pod: 'cart-0' },
  { name: 'del-ipamc', plugin: 'tke-eni-ipamc', command: 'DEL', pod: 'ledger-0' },
  { name: 'del-direct', plugin: 'tke-direct-eni', command: 'DEL', pod: 'db-0' },
  { name: 'del-unknown', plugin: 'tke-route-eni', command: 'DEL', pod: NO_SANDBOX },
];

/** Returns the configuration that a runtime passes on standard input, for an agent at `backend`. */
export function confOf({ plugin, conf = {} }: CniStep, backend: string, prevResult: object | undefined): object {
  const previous = prevResult === undefined ? {} : { prevResult };
  if (plugin !== 'tke-eni-ipamc')
    return { cniVersion: '1.1.0', name: plugin, type: plugin, backend, ...conf, ...previous };
  const ipam = { type: plugin, backend, mtu: 0, routeTable: 7, disableIPv6: false, timeoutMs: 30_000 };
  return { cniVersion: '1.1.0', name: 'ptp-net', type: 'ptp', ipam, ...conf, ...previous };
}

/** Returns the variables that a runtime sets. */
export function envOf({ plugin, command, pod }: CniStep): Readonly<Record<string, string>> {
  if (pod === undefined) return { CNI_COMMAND: command };
  const uid = `0d6f5a1e-0000-4000-8000-${Buffer.from(pod).toString('hex').padEnd(12, '0').slice(0, 12)}`;
  return {
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerIdOf(pod),
    CNI_NETNS: `/media/${pod}`,
    CNI_IFNAME: plugin === 'tke-eni-ipamc' ? 'net1' : 'eth0',
    CNI_ARGS: `IgnoreUnknown=1;K8S_POD_NAMESPACE=shop;K8S_POD_NAME=${pod};K8S_POD_UID=${uid}`,
  };
}
