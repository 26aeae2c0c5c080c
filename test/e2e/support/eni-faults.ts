import type { FaultScene } from './fault-scene.ts';
import type { NodeFault } from './node-fault.ts';

/** Runs `ip` on the node. */
const ip = ({ trial }: FaultScene, ...args: readonly string[]): Promise<string> => trial.node.netns.ip(...args);

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
