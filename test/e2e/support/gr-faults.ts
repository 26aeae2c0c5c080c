import type { FindingId } from '../../../inspection/catalogue/catalogue.ts';
import type { GrScene } from './gr-scene.ts';

/** Two Pods of the scene, between which a packet is sent. */
type PodName = keyof GrScene['pods'];

/** One thing that goes wrong with GlobalRoute Pods on the bridge. Injected while no agent runs. */
export type GrFault = {
  readonly name: string;
  readonly inject: (scene: GrScene) => Promise<unknown>;
  /** Takes back what repair leaves alone. */
  readonly undo?: (scene: GrScene) => Promise<unknown>;
  readonly from: PodName;
  readonly to: PodName;
  /** Whether a ping between the two gets no answer then, in the rule modes of which this holds. */
  readonly breaksPackets: Readonly<Record<'compact' | 'per-pod', boolean>>;
  /** What `explain` of the two, `diff` and `doctor` find; undefined: nothing of it. */
  readonly finds: { readonly explain?: FindingId; readonly diff?: FindingId; readonly doctor?: FindingId };
};

const ALWAYS = { compact: true, 'per-pod': true } as const;
const NEVER = { compact: false, 'per-pod': false } as const;
const onNode =
  (...commands: readonly string[]) =>
  async ({ trial }: GrScene): Promise<void> => {
    for (const command of commands) await trial.node.netns.ip(...command.split(' '));
  };
const allFind = (id: FindingId): GrFault['finds'] => ({ explain: id, diff: id, doctor: id });

/** The port of the first GlobalRoute Pod. */
async function portOf({ trial, pods }: GrScene): Promise<string> {
  const address = await pods.gr.netns.ipJson('link', 'show', 'eth0');
  const index = address[0]?.['link_index'];
  const ports = await trial.node.netns.ipJson('link', 'show');
  const found = ports.find(({ ifindex }) => ifindex === index)?.['ifname'];
  if (typeof found !== 'string') throw new Error('the Pod has no port');
  return found;
}

/** All faults of a node with the bridge. */
export const GR_FAULTS: readonly GrFault[] = [
  {
    name: 'rule 1024 gone, from an ENI Pod to the bridge',
    inject: onNode('rule del pref 1024'),
    ...{ from: 'eni', to: 'gr', breaksPackets: { compact: false, 'per-pod': true }, finds: allFind('rule-missing') },
  },
  {
    name: 'rule 1024 gone, between two Pods of the bridge',
    inject: onNode('rule del pref 1024'),
    ...{ from: 'gr', to: 'other', breaksPackets: NEVER, finds: { diff: 'rule-missing', doctor: 'rule-missing' } },
  },
  {
    name: 'a rule of another program before 1024',
    inject: onNode('rule add pref 100 to 172.20.0.0/26 lookup 77', 'route add default via 10.0.1.1 dev eth0 table 77'),
    undo: onNode('rule del pref 100', 'route flush table 77'),
    ...{ from: 'eni', to: 'gr', breaksPackets: ALWAYS },
    finds: { explain: 'foreign-rule-above-ours', doctor: 'foreign-rule-above-ours' },
  },
  {
    name: 'the bridge gone',
    inject: onNode('link del cbr0'),
    ...{ from: 'eni', to: 'gr', breaksPackets: ALWAYS, finds: allFind('bridge-missing') },
  },
  {
    name: 'the bridge down',
    inject: onNode('link set cbr0 down'),
    ...{ from: 'gr', to: 'other', breaksPackets: ALWAYS, finds: allFind('bridge-changed') },
  },
  {
    name: 'the bridge without its address',
    inject: onNode('address flush dev cbr0'),
    ...{ from: 'gr', to: 'eni', breaksPackets: ALWAYS, finds: allFind('bridge-changed') },
  },
  {
    name: 'the bridge without its address, between two Pods of it',
    inject: onNode('address flush dev cbr0'),
    ...{ from: 'gr', to: 'other', breaksPackets: NEVER, finds: allFind('bridge-changed') },
  },
  {
    name: 'the bridge promiscuous',
    inject: onNode('link set cbr0 promisc on'),
    ...{ from: 'eni', to: 'gr', breaksPackets: NEVER, finds: allFind('bridge-changed') },
  },
  {
    name: 'the port out of the bridge',
    inject: async (scene) => scene.trial.node.netns.ip('link', 'set', await portOf(scene), 'nomaster'),
    ...{ from: 'eni', to: 'gr', breaksPackets: ALWAYS, finds: allFind('bridge-port-changed') },
  },
  {
    name: 'the port without hairpin',
    inject: async (scene) =>
      scene.trial.node.netns.ip('link', 'set', await portOf(scene), 'type', 'bridge_slave', 'hairpin', 'off'),
    ...{ from: 'eni', to: 'gr', breaksPackets: NEVER, finds: allFind('bridge-port-changed') },
  },
  {
    name: 'bridge-nf-call-iptables 0',
    inject: ({ trial }) => trial.node.netns.run(['sysctl', '-qw', 'net.bridge.bridge-nf-call-iptables=0']),
    ...{ from: 'gr', to: 'other', breaksPackets: NEVER },
    finds: { explain: 'br-netfilter', diff: 'br-netfilter', doctor: 'br-netfilter' },
  },
  {
    name: 'forwarding off on the bridge',
    inject: ({ trial }) => trial.node.netns.run(['sysctl', '-qw', 'net.ipv4.conf.cbr0.forwarding=0']),
    ...{ from: 'gr', to: 'eni', breaksPackets: ALWAYS, finds: allFind('ip-forward-off') },
  },
  {
    name: 'the default route of a Pod on the bridge gone',
    inject: ({ pods }) => pods.gr.netns.ip('route', 'del', 'default'),
    ...{ from: 'gr', to: 'eni', breaksPackets: ALWAYS, finds: allFind('pod-route-missing') },
  },
  {
    name: 'the address of a Pod on the bridge gone',
    inject: ({ pods }) => pods.gr.netns.ip('address', 'flush', 'dev', 'eth0', 'scope', 'global'),
    ...{ from: 'eni', to: 'gr', breaksPackets: ALWAYS, finds: allFind('pod-address-missing') },
  },
];
