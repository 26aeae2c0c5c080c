import { CERTIFICATE_RULE } from '../../kube/certificates/certificate-options.ts';
import { clientRateRule } from '../../kube/connection-options.ts';
import { ELECTION_RULE } from '../../kube/election/election-settings.ts';
import type { Rule } from '../../runtime/settings/rule.ts';

/** Combinations of settings that the scheduler extender refuses; those of addresses and files, which manifests give, are in scheduler-config.ts. */
export const SCHEDULER_RULES: readonly Rule[] = [
  CERTIFICATE_RULE,
  {
    flag: 'client-ca-file',
    refusedWhen: [
      { flag: 'client-ca-file', is: [''] },
      { flag: 'tls-secret', is: [''] },
      { flag: 'client-allowed-names', isNot: [''] },
    ],
    expected: 'a file, as --client-allowed-names is given',
  },
  {
    flag: 'client-ca-file',
    refusedWhen: [
      ...['client-ca-file', 'tls-secret', 'client-allowed-names'].map((flag) => ({ flag, is: [''] })),
      { flag: 'allow-anonymous-loopback', is: ['false'] },
    ],
    expected:
      "a file with the authorities of kube-scheduler's client certificate, as whoever calls /bind places Pods (docs/static-ip.md has the commands that make it); or --allow-anonymous-loopback with a loopback --listen-address",
  },
  ELECTION_RULE,
  clientRateRule(),
];
