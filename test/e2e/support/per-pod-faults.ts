import type { FaultScene } from './fault-scene.ts';
import type { NodeFault } from './node-fault.ts';

/** Runs `ip` on the node. */
const ip = ({ trial }: FaultScene, ...args: readonly string[]): Promise<string> => trial.node.netns.ip(...args);

/** What only a node in per-pod mode has, and what only IPv6 has. For a node with both families. */
export const PER_POD_FAULTS: readonly NodeFault[] = [
  {
    name: 'missing rule: from the Pod',
    inject: (scene) => ip(scene, 'rule', 'del', 'pref', '1536', 'from', scene.pod.ip),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rule-missing', explain: 'rule-missing', doctor: 'rule-missing', repair: 'mends' },
  },
  {
    name: 'wrong table in the rule from the Pod',
    inject: async (scene) => {
      await ip(scene, 'rule', 'del', 'pref', '1536', 'from', scene.pod.ip);
      await ip(scene, 'rule', 'add', 'pref', '1536', 'from', scene.pod.ip, 'lookup', scene.otherTable, 'proto', '84');
    },
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rule-wrong-table', explain: 'rule-wrong-table', doctor: 'rule-wrong-table', repair: 'mends' },
  },
  {
    name: 'missing route: to the Pod, in main',
    inject: (scene) => ip(scene, 'route', 'del', `${scene.pod.ip}/32`, 'proto', '84'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'route-missing', explain: 'route-missing', doctor: 'route-missing', repair: 'mends' },
  },
  {
    name: 'stale rules of a Pod that is no more',
    inject: (scene) => ip(scene, 'rule', 'add', 'pref', '512', 'to', '10.0.2.201', 'lookup', 'main', 'proto', '84'),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'rule-stale', doctor: 'rule-stale', repair: 'mends' },
  },
  {
    name: 'IPv6: no neighbour for the gateway in the Pod',
    inject: ({ pod }) => pod.netns.ip('neigh', 'del', 'fe80::1', 'dev', 'eth0'),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'neigh-missing', doctor: 'neigh-missing', repair: 'mends' },
  },
  {
    name: 'IPv6: the default route of the ENI’s table gone',
    inject: (scene) => ip(scene, '-6', 'route', 'del', 'default', 'table', scene.table),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'route-missing', doctor: 'route-missing', repair: 'mends' },
  },
];
