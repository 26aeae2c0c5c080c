import { randomBytes } from 'node:crypto';
import type { FaultScene } from './fault-scene.ts';
import type { NodeFault } from './node-fault.ts';

/** An address of the Pod's subnet that the VPC has given to nobody. */
const UNASSIGNED_IP = '10.0.2.250';

/** Runs `ip` on the node. */
const ip = ({ trial }: FaultScene, ...args: readonly string[]): Promise<string> => trial.node.netns.ip(...args);

/** Runs `ip` in the Pod. */
const ipInPod = ({ pod }: FaultScene, ...args: readonly string[]): Promise<string> => pod.netns.ip(...args);

/** Names and alias of a host veth as an attachment that is no more has left it. */
const LEAKED = { name: `eni${randomBytes(6).toString('hex').slice(0, 11)}`, id: randomBytes(32).toString('hex') };

const setLeaked = async (scene: FaultScene): Promise<void> => {
  await ip(scene, 'link', 'set', LEAKED.name, 'alias', `tke-eni/${LEAKED.id}/eth0`);
  await ip(scene, 'link', 'set', LEAKED.name, 'up');
};

const leakedNetns = ({ trial }: FaultScene): string => `${trial.vpc.prefix}leaked`;

/** A bridge of another program. */
const BRIDGE = 'other-br';

/** The Pod, its two interfaces and its address. */
export const POD_FAULTS: readonly NodeFault[] = [
  {
    name: 'wrong neighbour MAC in the Pod',
    inject: (scene) =>
      ipInPod(
        scene,
        ...['neigh', 'replace', '169.254.1.1', 'lladdr', '02:de:ad:be:ef:01'],
        ...['dev', 'eth0', 'nud', 'permanent'],
      ),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'neigh-wrong-mac', explain: 'neigh-wrong-mac', doctor: 'neigh-wrong-mac', repair: 'mends' },
  },
  {
    name: 'no neighbour for the gateway in the Pod',
    inject: (scene) => ipInPod(scene, 'neigh', 'del', '169.254.1.1', 'dev', 'eth0'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'neigh-missing', explain: 'neigh-missing', doctor: 'neigh-missing', repair: 'mends' },
  },
  {
    name: "the Pod's default route gone",
    inject: (scene) => ipInPod(scene, 'route', 'del', 'default'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'pod-route-missing', explain: 'pod-route-missing', doctor: 'pod-route-missing', repair: 'mends' },
  },
  {
    name: "the Pod's address gone",
    inject: (scene) => ipInPod(scene, 'address', 'flush', 'dev', 'eth0', 'scope', 'global'),
    isOurs: true,
    breaksPackets: true,
    expects: {
      diff: 'pod-address-missing',
      explain: 'pod-address-missing',
      doctor: 'pod-address-missing',
      repair: 'mends',
    },
  },
  {
    name: "the Pod's interface down",
    inject: (scene) => ipInPod(scene, 'link', 'set', 'eth0', 'down'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'pod-link-down', explain: 'pod-link-down', doctor: 'pod-link-down', repair: 'mends' },
  },
  {
    name: 'anti-spoofing drop: the Pod sends with a source that is not its own',
    inject: async (scene) => {
      await ipInPod(scene, 'address', 'add', `${UNASSIGNED_IP}/32`, 'dev', 'eth0');
      await ipInPod(
        scene,
        ...['route', 'replace', 'default', 'via', '169.254.1.1', 'dev', 'eth0'],
        ...['proto', '84', 'src', UNASSIGNED_IP],
      );
    },
    undo: (scene) => ipInPod(scene, 'address', 'del', `${UNASSIGNED_IP}/32`, 'dev', 'eth0'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'source-not-ours', explain: 'source-not-ours', doctor: 'source-not-ours', repair: 'mends' },
  },
  {
    name: 'MTU mismatch: the Pod sends larger packets than its ENI takes',
    inject: (scene) => ipInPod(scene, 'link', 'set', 'eth0', 'mtu', '9000'),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'mtu-mismatch', explain: 'mtu-mismatch', doctor: 'mtu-mismatch', repair: 'mends' },
  },
  {
    name: "the Pod's host interface down",
    inject: (scene) => ip(scene, 'link', 'set', scene.hostVeth, 'down'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'veth-down', explain: 'veth-down', doctor: 'veth-down', repair: 'mends' },
  },
  {
    name: "the MAC of the Pod's host interface changed, as MACAddressPolicy does",
    inject: (scene) => ip(scene, 'link', 'set', scene.hostVeth, 'address', '02:de:ad:be:ef:03'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'veth-mac-changed', explain: 'veth-mac-changed', doctor: 'veth-mac-changed', repair: 'mends' },
  },
  {
    name: "ARP off on the Pod's host interface",
    inject: (scene) => ip(scene, 'link', 'set', scene.hostVeth, 'arp', 'off'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'link-noarp', explain: 'link-noarp', doctor: 'link-noarp', repair: 'mends' },
  },
  {
    name: 'ARP off in the Pod',
    inject: async (scene) => {
      await ipInPod(scene, 'link', 'set', 'eth0', 'arp', 'off');
      // What the node has learned would answer for a while.
      await ip(scene, 'neigh', 'flush', 'dev', scene.hostVeth);
    },
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'link-noarp', explain: 'link-noarp', doctor: 'link-noarp', repair: 'mends' },
  },
  {
    name: "the Pod's host interface in a bridge",
    inject: async (scene) => {
      await ip(scene, 'link', 'add', BRIDGE, 'up', 'type', 'bridge');
      await ip(scene, 'link', 'set', scene.hostVeth, 'master', BRIDGE);
    },
    undo: (scene) => ip(scene, 'link', 'del', BRIDGE),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'link-enslaved', explain: 'link-enslaved', doctor: 'link-enslaved', repair: 'mends' },
  },
  {
    name: "forwarding off on the Pod's host interface",
    inject: ({ trial, hostVeth }) => trial.node.netns.sysctl({ [`net/ipv4/conf/${hostVeth}/forwarding`]: 0 }),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'ip-forward-off', explain: 'ip-forward-off', doctor: 'ip-forward-off', repair: 'mends' },
  },
  {
    name: "the Pod's host interface in the wrong group",
    inject: (scene) => ip(scene, 'link', 'set', scene.hostVeth, 'group', '77'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'link-group-wrong', explain: 'link-group-wrong', doctor: 'link-group-wrong', repair: 'mends' },
  },
  {
    name: 'two owners of one address: the node has the address of the Pod',
    inject: (scene) => ip(scene, 'address', 'add', `${scene.pod.ip}/32`, 'dev', 'eth0'),
    undo: (scene) => ip(scene, 'address', 'del', `${scene.pod.ip}/32`, 'dev', 'eth0'),
    isOurs: false,
    breaksPackets: true,
    expects: {
      diff: 'address-two-owners',
      explain: 'address-two-owners',
      doctor: 'address-two-owners',
      repair: 'refuses',
    },
  },
  {
    name: "an IPv4 address on the Pod's host interface",
    inject: (scene) => ip(scene, 'address', 'add', '192.0.2.1/32', 'dev', scene.hostVeth),
    undo: (scene) => ip(scene, 'address', 'del', '192.0.2.1/32', 'dev', scene.hostVeth),
    isOurs: false,
    breaksPackets: false,
    expects: { diff: 'veth-foreign-address', doctor: 'veth-foreign-address', repair: 'refuses' },
  },
  {
    name: 'leaked veth: of ours, without lease and without a sandbox',
    inject: async (scene) => {
      await ip(scene, 'link', 'add', LEAKED.name, 'type', 'veth', 'peer', 'name', 'leaked0');
      await setLeaked(scene);
    },
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'veth-leaked', doctor: 'veth-leaked', repair: 'mends' },
  },
  {
    name: 'veth of ours without lease whose sandbox lives',
    inject: async (scene) => {
      await ip(scene, 'netns', 'add', leakedNetns(scene));
      await ip(scene, 'link', 'add', LEAKED.name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', leakedNetns(scene));
      await setLeaked(scene);
    },
    undo: async (scene) => {
      await ip(scene, 'link', 'del', LEAKED.name);
      await ip(scene, 'netns', 'del', leakedNetns(scene));
    },
    isOurs: false,
    breaksPackets: false,
    expects: { diff: 'pod-without-lease', doctor: 'pod-without-lease', repair: 'refuses' },
  },
];
