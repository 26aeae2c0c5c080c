import type { SysctlState } from '../../dataplane/desired.ts';
import { sysctlDifference } from '../../dataplane/diff.ts';
import type { EniNetwork, NodeNetwork } from '../../dataplane/network.ts';
import { NETCONFA_IFINDEX_ALL } from '../../netlink/uapi/netconf.ts';
import type { Sysctl } from '../../sysctl/sysctl.ts';
import type { SysctlKey } from '../../sysctl/sysctl-key.ts';
import type { NodeState } from '../state/node-state.ts';
import { desiredState } from './desired-state.ts';
import type { FightDetector } from './fight-detector.ts';
import { objectOf } from './object-of.ts';

/** Dependencies of comparing settings. */
type SettingsWatchDeps = {
  readonly state: NodeState;
  readonly nodeNetwork: () => NodeNetwork | undefined;
  readonly sysctl: Pick<Sysctl, 'find'>;
  readonly fights: Pick<FightDetector, 'isHeld'>;
  readonly monotonicMs: () => number;
};

/**
 * Compares settings below /proc/sys with the plan. The kernel notifies some of them, without their sender, and the others not
 * at all. What waits because another program keeps changing it does not differ: a pass follows at the end of the wait.
 */
type SettingsWatch = {
  /**
   * Reports whether a setting of this link differs; of the whole node for NETCONFA_IFINDEX_ALL. Reads up to six files. @throws
   * PlanError, SysctlError
   */
  differsAt(ifindex: number): boolean;
  /**
   * Compares the next twentieth of the settings that the kernel does not notify, and those that packets need at once, and
   * tells whether one differs. Reads a file for each; all of them take tens of milliseconds, which no ADD should wait for.
   * @throws PlanError, SysctlError
   */
  differsNext(): boolean;
};

/** So many calls read all settings. */
const SLICES = 20;
/** What RTM_NEWNETCONF reports of the planned settings. @see uapi/linux/netconf.h */
const NOTIFIED: ReadonlySet<string> = new Set(['ip_forward', 'forwarding', 'rp_filter']);
/** Each call reads these: while one differs, TCP streams of the fast path wait where invalid packets are dropped. */
const AT_ONCE: ReadonlySet<string> = new Set(['nf_conntrack_tcp_be_liberal']);

/** Binds the comparison to the node's state and kernel. Changes nothing. */
export function openSettingsWatch(deps: SettingsWatchDeps): SettingsWatch {
  const { state, nodeNetwork, sysctl, fights, monotonicMs } = deps;
  const differ = (settings: readonly SysctlState[], indexes: ReadonlyMap<string, number>): boolean =>
    settings.some((setting) => {
      const operation = sysctlDifference(setting, sysctl.find(setting.key));
      if (operation === undefined) return false;
      const object = objectOf(operation, (ifname) => indexes.get(ifname));
      return !fights.isHeld(object, monotonicMs());
    });
  const planned = (
    node: NodeNetwork,
    enis: readonly EniNetwork[],
    ifindexes: Iterable<number>,
  ): readonly SysctlState[] => {
    const links = [...ifindexes].map((ifindex) => ({ ifindex }));
    return desiredState(state, { ...node, ruleMode: state.ruleMode }, enis, links).sysctls;
  };
  let round: readonly SysctlState[] = [];
  let next = 0;
  return {
    differsAt: (ifindex) => {
      const node = nodeNetwork();
      if (node === undefined) return false;
      const indexes = indexesOf(state, node);
      const [ifname] = [...indexes].find((entry) => entry[1] === ifindex) ?? [];
      if (ifname === undefined && ifindex !== NETCONFA_IFINDEX_ALL) return false;
      // Each ADD causes some of these: the plan is made for this link alone.
      const pod = [...state.leases.values()].find(({ hostVeth }) => hostVeth?.ifindex === ifindex);
      const enis = state.plannedEnis.filter((eni) => eni.ifindex === ifindex || eni.eniId === pod?.eniId);
      const ofLink = planned(node, enis, [ifindex]).filter(({ key }) => ifnameOf(key) === ifname);
      return differ(ofLink, indexes);
    },
    differsNext: () => {
      const node = nodeNetwork();
      if (node === undefined) return false;
      const indexes = indexesOf(state, node);
      if (next >= SLICES) next = 0;
      if (next === 0)
        round = planned(node, state.plannedEnis, indexes.values()).filter(({ key }) => !NOTIFIED.has(nameOf(key)));
      const size = Math.ceil(round.length / SLICES);
      const slice = round.slice(next * size, (next + 1) * size);
      next += 1;
      return differ([...slice, ...round.filter(({ key }) => AT_ONCE.has(nameOf(key)))], indexes);
    },
  };
}

function nameOf({ path }: SysctlKey): string {
  return path.at(-1) ?? '';
}

/** Names and indexes of the links that settings are planned for, as they were when they were planned. */
function indexesOf({ plannedEnis, leases }: NodeState, { primary, bridge }: NodeNetwork): ReadonlyMap<string, number> {
  const veths = [...leases.values()].flatMap(({ hostVeth }) =>
    hostVeth?.ifindex === undefined ? [] : [[hostVeth.name, hostVeth.ifindex] as const],
  );
  return new Map([
    [primary.ifname, primary.ifindex],
    ...(bridge === undefined ? [] : [[bridge.name, bridge.ifindex] as const]),
    ...plannedEnis.map(({ ifname, ifindex }) => [ifname, ifindex] as const),
    ...veths,
  ]);
}

/** The link of a setting; undefined for one of the whole node. */
function ifnameOf({ path }: SysctlKey): string | undefined {
  const [, , conf, ifname] = path;
  return conf === 'conf' && ifname !== 'all' ? ifname : undefined;
}
