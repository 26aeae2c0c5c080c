import type { RuleMode } from '../../dataplane/network.ts';
import type { Logger } from '../../runtime/log.ts';
import { hasCilium } from '../config/chained-plugins.ts';
import type { AgentConfig } from '../config/options.ts';
import type { NodeEvents } from '../events/node-events.ts';
import type { Journal } from '../journal/journal-content.ts';
import { ciliumConflists, type NetworkConf } from '../node/network-confs.ts';
import type { NodeState } from '../state/node-state.ts';

/** Dependencies of choosing the rule mode. */
type RuleModeDeps = {
  readonly config: Pick<AgentConfig, 'ruleMode' | 'role' | 'chainedPlugins'>;
  readonly host: { readNetworkConfs(): readonly NetworkConf[] };
  readonly hasNftables: boolean;
  readonly state: Pick<NodeState, 'ruleMode' | 'kickPass'>;
  readonly journal: Pick<Journal, 'load'>;
  readonly events: NodeEvents;
  readonly log: Logger;
};

/** The rule mode of a running agent. */
type ChosenRuleMode = {
  /**
   * Looks whether a configuration now chains cilium-cni on a node in compact mode, and migrates the node to per-pod mode
   * then. Idempotent.
   */
  noticeCilium(): void;
};

/**
 * Chooses the node's rule mode. The mode in force stays recorded until a pass has led all the way to the new one.
 *
 * Cilium may be installed at any time, and its marks use the same bits as those of compact mode. The way back is chosen at
 * the next start of the agent alone: Cilium's programs stay on the links for a while after its configuration is gone.
 */
export function chooseRuleMode(deps: RuleModeDeps): ChosenRuleMode {
  const { config, host, state } = deps;
  // Our own configuration, which the agent writes later.
  const byFlag = hasCilium(config.chainedPlugins) ? ['--chained-plugins'] : [];
  choose(deps, [...byFlag, ...ciliumConflists(host.readNetworkConfs())]);
  return {
    noticeCilium: () => {
      if (config.ruleMode !== 'auto' || state.ruleMode !== 'compact') return;
      const chained = ciliumConflists(host.readNetworkConfs());
      if (chained.length === 0) return;
      choose(deps, chained);
      state.kickPass('rule mode');
    },
  };
}

function choose({ config, hasNftables, state, journal, events, log }: RuleModeDeps, chained: readonly string[]): void {
  const before = journal.load().ruleMode;
  const { mode, why } = decideRuleMode(config.ruleMode, { role: config.role, hasNftables, ciliumConflists: chained });
  state.ruleMode = mode;
  log.info(before === undefined || before === mode ? 'rule mode' : 'rule mode changes', { before, mode, why });
  if (before !== mode) events.report('Normal', 'RuleMode', `policy rules are laid out as ${mode}: ${why}`);
}

/** The facts that decide the rule mode of `auto`. */
type RuleModeEvidence = {
  readonly role: 'full' | 'uplinks';
  readonly hasNftables: boolean;
  /** Flag and files of the CNI conf folder that chain cilium-cni, whose marks use the same bits as ours. */
  readonly ciliumConflists: readonly string[];
};

/** A rule mode and the reason for it. */
type RuleModeChoice = { readonly mode: RuleMode; readonly why: string };

/** Decides which layout of rules the node gets. */
export function decideRuleMode(configured: RuleMode | 'auto', evidence: RuleModeEvidence): RuleModeChoice {
  if (evidence.role === 'uplinks') {
    return { mode: 'per-pod', why: '--role=uplinks: compact marks packets by the links of Pods, which are not ours' };
  }
  if (configured !== 'auto') return { mode: configured, why: `--rule-mode=${configured}` };
  if (!evidence.hasNftables) return { mode: 'per-pod', why: 'nftables is missing' };
  const [conflist] = evidence.ciliumConflists;
  if (conflist !== undefined) return { mode: 'per-pod', why: `${conflist} chains cilium-cni` };
  return { mode: 'compact', why: 'nftables works and cilium-cni is not chained' };
}
