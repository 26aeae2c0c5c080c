import { CERTIFICATE_RULE } from '../kube/certificates/certificate-options.ts';
import { isEmpty, isSet, type Rule, refused } from '../runtime/settings/rule.ts';

/** Combinations of settings that the webhook refuses. */
export const WEBHOOK_RULES: readonly Rule[] = [
  refused(
    'client-ca-file',
    'nothing, as --tls-secret is given: clients are checked with certificates in files',
    ...['tls-secret', 'client-ca-file'].map(isSet),
  ),
  CERTIFICATE_RULE,
  refused(
    'client-ca-file',
    'a file, as --client-allowed-names is given',
    isSet('client-allowed-names'),
    isEmpty('client-ca-file'),
  ),
];
