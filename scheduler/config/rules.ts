import { CERTIFICATE_RULE } from '../../kube/certificates/certificate-options.ts';
import { clientRateRule } from '../../kube/connection-options.ts';
import { ELECTION_RULE } from '../../kube/election/election-settings.ts';
import { isEmpty, isSet, type Rule, refused } from '../../runtime/settings/rule.ts';

/** Combinations of settings that the scheduler extender refuses; those of addresses and files, which manifests give, are in scheduler-config.ts. */
export const SCHEDULER_RULES: readonly Rule[] = [
  CERTIFICATE_RULE,
  refused(
    'client-ca-file',
    'a file, as --client-allowed-names is given',
    ...['client-ca-file', 'tls-secret'].map(isEmpty),
    isSet('client-allowed-names'),
  ),
  refused(
    'client-ca-file',
    "a file with the authorities of kube-scheduler's client certificate, as whoever calls /bind places Pods (docs/static-ip.md has the commands that make it); or --allow-anonymous-loopback with a loopback --listen-address",
    ...['client-ca-file', 'tls-secret', 'client-allowed-names'].map(isEmpty),
    { flag: 'allow-anonymous-loopback', is: ['false'] },
  ),
  ELECTION_RULE,
  clientRateRule(),
];
