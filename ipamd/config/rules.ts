import { CLOUD_RULE } from '../../cloud/tencent/cloud-options.ts';
import { clientRateRule } from '../../kube/connection-options.ts';
import { ELECTION_RULE } from '../../kube/election/election-settings.ts';
import type { Rule } from '../../runtime/settings/rule.ts';
import { STARTUP_TAINT_RULES } from './taint-selector.ts';

/** A smaller block has no address for a Pod. */
const MIN_MAX_PODS = 8;

/** Combinations of settings that ipamd refuses; those of networks are `findBlockFaults`. */
export const IPAMD_RULES: readonly Rule[] = [
  ...['ip', 'eni'].map((kind) => warmTargetRule(`${kind}-min-warm-target`, `${kind}-max-warm-target`)),
  {
    flag: 'max-pods-per-node',
    refusedWhen: [
      { flag: 'max-pods-per-node', isNot: ['0'] },
      { flag: 'max-pods-per-node', below: MIN_MAX_PODS },
    ],
    expected: `at least ${MIN_MAX_PODS}, or 0`,
  },
  CLOUD_RULE,
  {
    flag: 'cluster-cidr',
    refusedWhen: [
      { flag: 'allocate-node-cidrs', is: ['true'] },
      { flag: 'cluster-cidr', is: [''] },
    ],
    expected: 'the networks of Pods, as --allocate-node-cidrs is set',
  },
  {
    flag: 'cluster-cidr',
    refusedWhen: [
      { flag: 'gr-routes', is: ['ipamd'] },
      { flag: 'cluster-cidr', is: [''] },
    ],
    expected: 'the networks of Pods, as --gr-routes=ipamd leads them to nodes',
  },
  ...STARTUP_TAINT_RULES,
  ELECTION_RULE,
  clientRateRule(),
  {
    flag: 'enable-security-groups',
    refusedWhen: [
      { flag: 'security-groups', isNot: [''] },
      { flag: 'enable-security-groups', is: ['false'] },
    ],
    expected: 'true, as --security-groups are given',
  },
];

function warmTargetRule(min: string, max: string): Rule {
  return { flag: min, refusedWhen: [{ sum: [min], above: max }], expected: `at most --${max}, {${max}}` };
}
