import type { FaultScene } from './fault-scene.ts';
import type { NodeFault } from './node-fault.ts';

/** Runs `ip` on the node. */
const ip = ({ trial }: FaultScene, ...args: readonly string[]): Promise<string> => trial.node.netns.ip(...args);

const MARK_RULE = ({ fwmark }: FaultScene): readonly string[] => ['pref', '1536', 'fwmark', fwmark];

/** Rules, routes, the nftables table and settings of the node. */
export const ROUTING_FAULTS: readonly NodeFault[] = [
  {
    name: 'missing rule: the mark of the ENI',
    inject: (scene) => ip(scene, 'rule', 'del', ...MARK_RULE(scene)),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rule-missing', explain: 'rule-missing', doctor: 'rule-missing', repair: 'mends' },
  },
  {
    name: 'missing rule: the table of Pod routes',
    inject: (scene) => ip(scene, 'rule', 'del', 'pref', '512'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rule-missing', explain: 'rule-missing', doctor: 'rule-missing', repair: 'mends' },
  },
  {
    name: 'duplicate rule: the same with the protocol of another program',
    inject: (scene) => ip(scene, 'rule', 'add', ...MARK_RULE(scene), 'lookup', scene.table, 'proto', '99'),
    undo: (scene) => ip(scene, 'rule', 'del', ...MARK_RULE(scene), 'lookup', scene.table, 'proto', '99'),
    isOurs: false,
    breaksPackets: false,
    expects: { diff: 'rule-duplicate', explain: 'rule-duplicate', doctor: 'rule-duplicate', repair: 'refuses' },
  },
  {
    name: 'wrong table in a rule',
    inject: async (scene) => {
      await ip(scene, 'rule', 'del', ...MARK_RULE(scene));
      await ip(scene, 'rule', 'add', ...MARK_RULE(scene), 'lookup', scene.otherTable, 'proto', '84');
    },
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rule-wrong-table', explain: 'rule-wrong-table', doctor: 'rule-wrong-table', repair: 'mends' },
  },
  {
    name: 'stale rule: an address that nobody has',
    inject: (scene) => ip(scene, 'rule', 'add', 'pref', '1537', 'from', '10.0.2.201', 'lookup', '4999', 'proto', '84'),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'rule-stale', doctor: 'rule-stale', repair: 'mends' },
  },
  {
    name: 'stale route: to an address that nobody has',
    inject: (scene) =>
      ip(
        scene,
        ...['route', 'add', '10.0.2.200/32', 'dev', scene.hostVeth],
        ...['table', '3999', 'proto', '84', 'scope', 'link'],
      ),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'route-stale', doctor: 'route-stale', repair: 'mends' },
  },
  {
    name: 'missing route: to the Pod',
    inject: (scene) => ip(scene, 'route', 'del', `${scene.pod.ip}/32`, 'table', '3999'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'route-missing', explain: 'route-missing', doctor: 'route-missing', repair: 'mends' },
  },
  {
    name: 'route by the wrong device: to the Pod by its ENI',
    inject: (scene) =>
      ip(
        scene,
        ...['route', 'replace', `${scene.pod.ip}/32`, 'dev', scene.eni.ifname],
        ...['table', '3999', 'proto', '84', 'scope', 'link'],
      ),
    isOurs: true,
    breaksPackets: true,
    expects: {
      diff: 'route-wrong-device',
      explain: 'route-wrong-device',
      doctor: 'route-wrong-device',
      repair: 'mends',
    },
  },
  {
    name: "attribute of a route: a locked MTU on the default of the ENI's table",
    inject: (scene) =>
      ip(
        scene,
        ...['route', 'change', 'default', 'via', String(scene.eni.gateway), 'dev', scene.eni.ifname],
        ...['table', scene.table, 'proto', '84', 'mtu', 'lock', '1300'],
      ),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'attribute-changed', doctor: 'attribute-changed', repair: 'mends' },
  },
  {
    name: 'rule for one protocol in the place of ours',
    inject: async (scene) => {
      await ip(scene, 'rule', 'del', ...MARK_RULE(scene));
      await ip(scene, 'rule', 'add', ...MARK_RULE(scene), 'ipproto', 'udp', 'lookup', scene.table, 'proto', '84');
    },
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rule-missing', explain: 'rule-missing', doctor: 'rule-missing', repair: 'mends' },
  },
  {
    name: "missing route: the default of the ENI's table",
    inject: (scene) => ip(scene, 'route', 'del', 'default', 'table', scene.table),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'route-missing', explain: 'route-missing', doctor: 'route-missing', repair: 'mends' },
  },
  {
    name: 'blackhole route in the place of the route to the Pod',
    inject: (scene) => ip(scene, 'route', 'replace', 'blackhole', `${scene.pod.ip}/32`, 'table', '3999'),
    // As the finding says: whoever wants ours back deletes the blackhole, and repairs.
    undo: (scene) => ip(scene, 'route', 'del', 'blackhole', `${scene.pod.ip}/32`, 'table', '3999'),
    isOurs: false,
    breaksPackets: true,
    expects: { diff: 'blackhole-route', explain: 'blackhole-route', doctor: 'blackhole-route', repair: 'refuses' },
  },
  {
    name: "table collision: another program's route in the ENI's table",
    inject: (scene) =>
      ip(
        scene,
        ...['route', 'add', `${scene.trial.vpc.outside.ip}/32`],
        ...['dev', 'eth0', 'table', scene.table, 'proto', 'static'],
      ),
    undo: (scene) => ip(scene, 'route', 'del', `${scene.trial.vpc.outside.ip}/32`, 'table', scene.table),
    isOurs: false,
    breaksPackets: true,
    expects: { diff: 'table-collision', explain: 'table-collision', doctor: 'table-collision', repair: 'refuses' },
  },
  {
    name: 'foreign rule above ours',
    inject: (scene) => ip(scene, 'rule', 'add', 'pref', '100', 'from', scene.pod.ip, 'lookup', 'main'),
    undo: (scene) => ip(scene, 'rule', 'del', 'pref', '100'),
    isOurs: false,
    breaksPackets: true,
    expects: {
      diff: 'foreign-rule-above-ours',
      explain: 'foreign-rule-above-ours',
      doctor: 'foreign-rule-above-ours',
      repair: 'refuses',
    },
  },
  {
    name: 'foreign rule above ours that prohibits',
    inject: (scene) => ip(scene, 'rule', 'add', 'pref', '100', 'from', scene.pod.ip, 'prohibit'),
    undo: (scene) => ip(scene, 'rule', 'del', 'pref', '100'),
    isOurs: false,
    breaksPackets: true,
    expects: {
      diff: 'foreign-rule-above-ours',
      explain: 'foreign-rule-above-ours',
      doctor: 'foreign-rule-above-ours',
      repair: 'refuses',
    },
  },
  {
    name: 'foreign rule at a priority of ours',
    inject: (scene) => ip(scene, 'rule', 'add', 'pref', '1537', 'from', '10.77.0.0/16', 'lookup', 'main'),
    undo: (scene) => ip(scene, 'rule', 'del', 'pref', '1537', 'from', '10.77.0.0/16'),
    isOurs: false,
    breaksPackets: false,
    expects: { diff: 'foreign-rule-priority', doctor: 'foreign-rule-priority', repair: 'refuses' },
  },
  {
    name: 'nft flush ruleset',
    inject: ({ trial }) => trial.node.netns.nft('flush ruleset\n'),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'nft-table-missing', explain: 'nft-table-missing', doctor: 'nft-table-missing', repair: 'mends' },
  },
  {
    name: "nftables: the chain of the Pod's ENI flushed",
    inject: ({ trial, table }) => trial.node.netns.nft(`flush chain inet tke_eni eni_${table}\n`),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'nft-table-changed', explain: 'nft-table-changed', doctor: 'nft-table-changed', repair: 'mends' },
  },
  {
    name: 'ip_forward 0',
    inject: ({ trial }) => trial.node.netns.sysctl({ 'net/ipv4/ip_forward': 0 }),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'ip-forward-off', explain: 'ip-forward-off', doctor: 'ip-forward-off', repair: 'mends' },
  },
  {
    name: 'rp_filter strict on the ENI, without its mark',
    inject: ({ trial, eni: { ifname } }) =>
      trial.node.netns.sysctl({
        [`net/ipv4/conf/${ifname}/rp_filter`]: 1,
        [`net/ipv4/conf/${ifname}/src_valid_mark`]: 0,
      }),
    isOurs: true,
    breaksPackets: true,
    expects: { diff: 'rp-filter-strict', explain: 'rp-filter-strict', doctor: 'rp-filter-strict', repair: 'mends' },
  },
  {
    name: "rp_filter off on the Pod's host interface",
    inject: ({ trial, hostVeth }) => trial.node.netns.sysctl({ [`net/ipv4/conf/${hostVeth}/rp_filter`]: 0 }),
    isOurs: true,
    breaksPackets: false,
    expects: { diff: 'rp-filter-off', explain: 'rp-filter-off', doctor: 'rp-filter-off', repair: 'mends' },
  },
];
