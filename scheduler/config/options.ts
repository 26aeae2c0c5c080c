import { CERTIFICATE_OPTIONS, CERTIFICATE_RULE } from '../../kube/certificates/certificate-options.ts';
import { apiServerOptions, clientRateOptions, clientRateRule } from '../../kube/connection-options.ts';
import { electionOptions } from '../../kube/election/election-options.ts';
import { ELECTION_RULE } from '../../kube/election/election-settings.ts';
import { objectNameValue } from '../../kube/kube-option-value.ts';
import type { Faults } from '../../runtime/decode.ts';
import { isLoopbackAddress } from '../../runtime/loopback-address.ts';
import { observabilityOptions } from '../../runtime/settings/observability-options.ts';
import { option, type SettingsOf, type SettingsProgram } from '../../runtime/settings/option.ts';
import {
  clientNamesValue,
  durationValue,
  listenValue,
  pathValue,
  switchValue,
  wholeNumberValue,
} from '../../runtime/settings/option-value.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { isEmpty, isSet, type Rule, refused } from '../../runtime/settings/rule.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;

/** Settings of the HTTP server that kube-scheduler calls. */
const EXTENDER_OPTIONS = {
  listenAddress: option(
    'Extender',
    'listen-address',
    listenValue,
    '0.0.0.0:61690',
    'Serves /filter, /prioritize, /bind and /preempt to kube-scheduler.',
  ),
  tlsCertFile: option(
    'Extender',
    'tls-cert-file',
    pathValue(true),
    '',
    "Certificate chain to serve with, PEM; read again when it changes. '' serves plain HTTP, which --allow-anonymous-loopback alone permits.",
  ),
  tlsPrivateKeyFile: option('Extender', 'tls-private-key-file', pathValue(true), '', 'Its private key, PEM.'),
  ...CERTIFICATE_OPTIONS,
  clientCaFile: option(
    'Extender',
    'client-ca-file',
    pathValue(true),
    '',
    'Only clients with a certificate of these authorities are answered; PEM, read again when it changes. Required, as /bind places Pods; --allow-anonymous-loopback is an exception, and --tls-secret, with which no file is read.',
  ),
  clientAllowedNames: option(
    'Extender',
    'client-allowed-names',
    clientNamesValue,
    '',
    "Of those clients only the ones whose certificate has one of these common names are answered; '' answers all. Needed where the authorities sign other certificates too, as those of the cluster do.",
  ),
  allowAnonymousLoopback: option(
    'Extender',
    'allow-anonymous-loopback',
    switchValue,
    'false',
    "Answer clients without a certificate, on a loopback address only. Every process of the node may then bind Pods, whatever its user, and so may every Pod in the host's network.",
  ),
  bodyLimitMib: option(
    'Extender',
    'body-limit-mib',
    wholeNumberValue(1, 1_024),
    '1',
    'Largest request, in MiB. Without nodeCacheCapable a request carries all Nodes, some 10 KiB each: raise it then, and the memory limit, which has to be 128 MiB and 36 times this.',
  ),
  filterWaitMs: option(
    'Extender',
    'filter-wait',
    durationValue(0, 30 * SECOND_MS),
    '2s',
    'How long filter waits for the claim of a Pod that keeps its address, or for an ENI that is being bound, before it refuses. Keep it below httpTimeout of the extender.',
  ),
  reservationTtlMs: option(
    'Extender',
    'reservation-ttl',
    durationValue(10 * SECOND_MS, 60 * MINUTE_MS),
    '2m',
    'How long a place is held for a Pod whose binding was not seen.',
  ),
} as const;

/** Settings of the API server connection and of the leader election. */
const KUBERNETES_OPTIONS = {
  ...apiServerOptions({}),
  ...clientRateOptions(
    {
      value: 200,
      help: 'Most calls a second to the API server. Binding takes one for a Pod, three for one that keeps its address.',
    },
    { value: 400 },
  ),
  namespace: option('Kubernetes', 'namespace', objectNameValue, 'kube-system', 'Namespace of the lock.'),
  ...electionOptions({
    verb: 'Decide',
    lockName: 'tke-eni-ip-scheduler-leader',
    minLeaseMs: 4 * SECOND_MS,
    lease: '20s',
    leaseHelp: ' No Pod of ours is scheduled during that time.',
    retry: '3s',
  }),
} as const;

const PROCESS_OPTIONS = {
  shutdownGraceMs: option(
    'Process',
    'shutdown-grace',
    durationValue(0, 10 * MINUTE_MS),
    '10s',
    "How long requests under way may take to end on SIGTERM, before the lock is released. Keep it below the Pod's terminationGracePeriodSeconds.",
  ),
  printKubeSchedulerConfig: option(
    'Process',
    'print-kube-scheduler-config',
    switchValue,
    'false',
    "Print kube-scheduler's configuration with the authority and a client certificate of --tls-secret filled in, and end. What is printed contains a private key.",
  ),
  ...observabilityOptions(
    '0.0.0.0:61691',
    "Serves /metrics, /healthz and /readyz; '' for none. A replica that stands by is ready too, as it forwards to the leader; without --client-ca-file it is not.",
  ),
} as const;

/** All settings of the scheduler extender: the only place that names them. Times are in milliseconds. */
const SCHEDULER_OPTIONS = { ...EXTENDER_OPTIONS, ...KUBERNETES_OPTIONS, ...PROCESS_OPTIONS } as const;

/** The settings that the scheduler extender runs with. The object is frozen. */
export type SchedulerConfig = SettingsOf<typeof SCHEDULER_OPTIONS>;

/** Combinations of settings that the scheduler extender refuses; those of addresses and files, which manifests give, are in `checkTogether`. */
const SCHEDULER_RULES: readonly Rule[] = [
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

/** The scheduler extender as a settings program: the source of its help, its docs and its settings reader. */
export const SCHEDULER_PROGRAM: SettingsProgram<typeof SCHEDULER_OPTIONS> = {
  name: 'tke-eni-ip-scheduler',
  options: SCHEDULER_OPTIONS,
  rules: SCHEDULER_RULES,
  source: 'scheduler/config/options.ts',
  example: { flag: 'filter-wait', text: '1s' },
};

/**
 * Reads the settings of the scheduler extender. The only effect is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readSchedulerConfig(input: SettingsInput): SettingsOutcome<SchedulerConfig> {
  return readSettings(SCHEDULER_PROGRAM, input, checkTogether);
}

function checkTogether(config: SchedulerConfig, faults: Faults): void {
  const { tlsCertFile, tlsPrivateKeyFile, clientCaFile, tlsSecret, printKubeSchedulerConfig } = config;
  if (tlsSecret === '' && printKubeSchedulerConfig) {
    faults.add('--tls-secret', 'a Secret, as --print-kube-scheduler-config is given', undefined);
  }
  if (config.listenAddress === '') faults.add('--listen-address', 'an address', '');
  if (tlsCertFile !== '' && tlsPrivateKeyFile === '') {
    faults.add('--tls-private-key-file', 'a file, as --tls-cert-file is given', undefined);
  }
  if (tlsCertFile === '' && tlsPrivateKeyFile !== '') {
    faults.add('--tls-cert-file', 'a file, as --tls-private-key-file is given', undefined);
  }
  // With a Secret no file is read: the command that prints the configuration has the settings of the container, not its arguments.
  if (clientCaFile !== '' && tlsCertFile === '' && tlsSecret === '') {
    faults.add('--tls-cert-file', 'a file, as --client-ca-file is given', undefined);
  }
  checkAnonymous(config, faults);
}

/** Without a client certificate Pods are bound over loopback alone. */
function checkAnonymous(config: SchedulerConfig, faults: Faults): void {
  const { listenAddress, clientCaFile, clientAllowedNames, allowAnonymousLoopback, tlsSecret } = config;
  if (!allowAnonymousLoopback || clientCaFile !== '' || tlsSecret !== '' || clientAllowedNames.length > 0) return;
  if (listenAddress === '' || isLoopbackAddress(listenAddress)) return;
  const expected = 'a loopback address such as 127.0.0.1:61690, as --allow-anonymous-loopback is given';
  faults.add('--listen-address', expected, listenAddress);
}
