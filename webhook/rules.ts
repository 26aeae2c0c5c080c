import { CERTIFICATE_RULE } from '../kube/certificates/certificate-options.ts';
import type { Rule } from '../runtime/settings/rule.ts';

/** Combinations of settings that the webhook refuses. */
export const WEBHOOK_RULES: readonly Rule[] = [
  {
    flag: 'client-ca-file',
    refusedWhen: [
      { flag: 'tls-secret', isNot: [''] },
      { flag: 'client-ca-file', isNot: [''] },
    ],
    expected: 'nothing, as --tls-secret is given: clients are checked with certificates in files',
  },
  CERTIFICATE_RULE,
  {
    flag: 'client-ca-file',
    refusedWhen: [
      { flag: 'client-allowed-names', isNot: [''] },
      { flag: 'client-ca-file', is: [''] },
    ],
    expected: 'a file, as --client-allowed-names is given',
  },
];
