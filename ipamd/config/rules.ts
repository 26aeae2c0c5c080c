import { CLOUD_RULE } from '../../cloud/tencent/cloud-options.ts';
import { clientRateRule } from '../../kube/connection-options.ts';
import { ELECTION_RULE } from '../../kube/election/election-settings.ts';
import { isEmpty, isSet, type Rule, refused } from '../../runtime/settings/rule.ts';
import { STARTUP_TAINT_RULES } from './taint-selector.ts';

/** A smaller block has no address for a Pod. */
const MIN_MAX_PODS = 8;

/** Combinations of settings that ipamd refuses; those of networks are `findBlockFaults`. */
export const IPAMD_RULES: readonly Rule[] = [
  ...['ip', 'eni'].map((kind) => warmTargetRule(`${kind}-min-warm-target`, `${kind}-max-warm-target`)),
  refused(
    'max-pods-per-node',
    `at least ${MIN_MAX_PODS}, or 0`,
    { flag: 'max-pods-per-node', isNot: ['0'] },
    { flag: 'max-pods-per-node', below: MIN_MAX_PODS },
  ),
  CLOUD_RULE,
  refused(
    'cluster-cidr',
    'the networks of Pods, as --allocate-node-cidrs is set',
    { flag: 'allocate-node-cidrs', is: ['true'] },
    isEmpty('cluster-cidr'),
  ),
  refused(
    'cluster-cidr',
    'the networks of Pods, as --gr-routes=ipamd leads them to nodes',
    { flag: 'gr-routes', is: ['ipamd'] },
    isEmpty('cluster-cidr'),
  ),
  ...STARTUP_TAINT_RULES,
  ELECTION_RULE,
  clientRateRule(),
  refused('enable-security-groups', 'true, as --security-groups are given', isSet('security-groups'), {
    flag: 'enable-security-groups',
    is: ['false'],
  }),
];

function warmTargetRule(min: string, max: string): Rule {
  return refused(min, `at most --${max}, {${max}}`, { sum: [min], above: max });
}
