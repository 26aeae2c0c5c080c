import type { RuleMode } from '../../dataplane/network.ts';

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
