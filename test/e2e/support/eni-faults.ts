import type { FaultScene } from './fault-scene.ts';
import type { NodeFault } from './node-fault.ts';

/** Runs `ip` on the node. */
const ip = ({ trial }: FaultScene, ...args: readonly string[]): Promise<string> => trial.node.netns.ip(...args);

/** A bridge of another program. */
const BRIDGE = 'other-br';

/** ENIs and their settings. */
export const ENI_FAULTS: readonly NodeFault[] = [
  {
    name: 'ENI down',
    inject: (scene) => ip(scene, 'link', 'set', scene.eni.ifname, 'down'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'eni-down', explain: 'eni-down', doctor: 'eni-down', repair: 'mends' },
  },
  {
    name: 'ARP off on the ENI',
    inject: (scene) => ip(scene, 'link', 'set', scene.eni.ifname, 'arp', 'off'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'link-noarp', explain: 'link-noarp', doctor: 'link-noarp', repair: 'mends' },
  },
  {
    name: 'ENI in a bridge',
    inject: async (scene) => {
      await ip(scene, 'link', 'add', BRIDGE, 'up', 'type', 'bridge');
      await ip(scene, 'link', 'set', scene.eni.ifname, 'master', BRIDGE);
    },
    undo: (scene) => ip(scene, 'link', 'del', BRIDGE),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'link-enslaved', explain: 'link-enslaved', doctor: 'link-enslaved', repair: 'mends' },
  },
  {
    name: 'the MAC of the ENI changed, as a bond or a cloned address does',
    inject: (scene) => ip(scene, 'link', 'set', scene.eni.ifname, 'address', '02:11:22:33:44:55'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'eni-mac-changed', explain: 'eni-mac-changed', doctor: 'eni-mac-changed', repair: 'mends' },
  },
  {
    name: 'forwarding off on the ENI',
    inject: ({ trial, eni }) => trial.node.netns.sysctl({ [`net/ipv4/conf/${eni.ifname}/forwarding`]: 0 }),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'ip-forward-off', explain: 'ip-forward-off', doctor: 'ip-forward-off', repair: 'mends' },
  },
  {
    name: 'ENI without its address',
    inject: (scene) => ip(scene, '-4', 'address', 'flush', 'dev', scene.eni.ifname),
    isOurs: true,
    breaksPackets: true,
    expects: {
      diff: 'eni-without-address',
      explain: 'eni-without-address',
      doctor: 'eni-without-address',
      repair: 'mends',
    },
  },
  {
    name: 'MTU mismatch: the ENI takes smaller packets than its Pods send',
    inject: (scene) => ip(scene, 'link', 'set', scene.eni.ifname, 'mtu', '1400'),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'mtu-mismatch', explain: 'mtu-mismatch', doctor: 'mtu-mismatch', repair: 'mends' },
  },
  {
    name: 'ENI with the connected route of its subnet',
    inject: (scene) => ip(scene, 'address', 'add', `${scene.eni.primaryIp}/24`, 'dev', scene.eni.ifname),
    undo: (scene) => ip(scene, 'address', 'del', `${scene.eni.primaryIp}/24`, 'dev', scene.eni.ifname),
    isOurs: false,
    breaksPackets: false,
    expects: { diff: 'eni-connected-route', doctor: 'eni-connected-route', repair: 'refuses' },
  },
  {
    name: 'ENI detached',
    inject: (scene) => ip(scene, 'link', 'del', scene.eni.ifname),
    undo: ({ trial, eni }) => trial.vpc.replug(eni.eniId),
    isOurs: false,
    breaksPackets: true,
    expects: { diff: 'eni-detached', explain: 'eni-detached', doctor: 'eni-detached', repair: 'refuses' },
  },
];
