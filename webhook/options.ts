import { CERTIFICATE_OPTIONS, CERTIFICATE_RULE } from '../kube/certificates/certificate-options.ts';
import { apiServerOptions } from '../kube/connection-options.ts';
import { loadBalancerClassValue } from '../kube/kube-option-value.ts';
import { observabilityOptions } from '../runtime/settings/observability-options.ts';
import { option, type SettingsOf, type SettingsProgram } from '../runtime/settings/option.ts';
import {
  choiceValue,
  clientNamesValue,
  durationValue,
  listenValue,
  pathValue,
  switchValue,
  textValue,
} from '../runtime/settings/option-value.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../runtime/settings/read-settings.ts';
import { isEmpty, isSet, type Rule, refused } from '../runtime/settings/rule.ts';

const MINUTE_MS = 60_000;

/**
 * All settings of the webhook, and the only place that names them; in the order of the help text. Times are in
 * milliseconds.
 */
const WEBHOOK_OPTIONS = {
  defaultNetwork: option(
    'Pods',
    'default-network',
    choiceValue('tke-route-eni', 'tke-direct-eni', 'tke-bridge'),
    'tke-route-eni',
    'Network of Pods that name none by their annotation; tke-bridge, in hybrid clusters, requests nothing for them.',
  ),
  staticIpConfigs: option(
    'Pods',
    'static-ip-configs',
    switchValue,
    'true',
    'Keep the addresses of Pods that a StaticIPConfig with deletePolicy Never selects. Needs the right to list and watch them; without it they are left out, and an error is logged.',
  ),
  ipamdNamespace: option(
    'Pods',
    'ipamd-namespace',
    textValue(/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/, 'NAME', 'the name of a namespace'),
    'kube-system',
    "Namespace of ipamd: a StaticIPConfig there may select Pods of other namespaces, as ipamd's --namespace says.",
  ),
  readinessGates: option(
    'Load balancers',
    'readiness-gates',
    switchValue,
    'false',
    'Give Pods the readiness gate cloud.tencent.com/load-balancer-backendgroup-ready when a Service of type LoadBalancer with direct access selects them, or one that an Ingress with direct access leads to. Needs the right to list and watch Services and Ingresses, and tke-cloud-controller-manager with --load-balancers=clb, which sets the condition.',
  ),
  loadBalancerClass: option(
    'Load balancers',
    'load-balancer-class',
    loadBalancerClassValue,
    '',
    'spec.loadBalancerClass of Services that count beside those without a class, as tke-cloud-controller-manager has it.',
  ),
  preStopSleep: option(
    'Load balancers',
    'pre-stop-sleep',
    switchValue,
    'false',
    'Give Pods with the annotation tke.cloud.tencent.com/pre-stop-sleep a preStop hook that sleeps, and as much more grace period. Needs Kubernetes 1.30: an older API server would refuse such Pods.',
  ),
  ...apiServerOptions({
    kubeconfig:
      ' Asked for StaticIPConfigs, for Services and Ingresses with --readiness-gates, and for certificates with --tls-secret.',
    master: ', so that the webhook does not need kube-proxy',
  }),
  listenAddress: option(
    'Serving',
    'listen-address',
    listenValue,
    '0.0.0.0:61692',
    'Where the API server calls, by HTTPS.',
  ),
  tlsCertFile: option(
    'Serving',
    'tls-cert-file',
    pathValue(),
    '/etc/tke-eni-ip-webhook/tls/tls.crt',
    'Certificate in PEM, with its chain. Looked at every ten seconds: a new one is taken without a restart.',
  ),
  tlsPrivateKeyFile: option(
    'Serving',
    'tls-private-key-file',
    pathValue(),
    '/etc/tke-eni-ip-webhook/tls/tls.key',
    'Its private key in PEM, without a password.',
  ),
  ...CERTIFICATE_OPTIONS,
  clientCaFile: option(
    'Serving',
    'client-ca-file',
    pathValue(true),
    '',
    "Only clients with a certificate of these authorities are answered; PEM, read again when it changes. '' answers everybody who reaches the port. The API server sends a certificate only where its AdmissionConfiguration names one.",
  ),
  clientAllowedNames: option(
    'Serving',
    'client-allowed-names',
    clientNamesValue,
    '',
    "Of those clients only the ones whose certificate has one of these common names are answered; '' answers all.",
  ),
  shutdownDelayMs: option(
    'Serving',
    'shutdown-delay',
    durationValue(0, 5 * MINUTE_MS),
    '5s',
    'How long it still serves after SIGTERM, no longer ready, until clients have stopped sending requests.',
  ),
  ...observabilityOptions('0.0.0.0:61693', "Serves /metrics, /healthz and /readyz by HTTP; '' for none."),
} as const;

/** The settings that the webhook runs with. The object is frozen. */
export type WebhookConfig = SettingsOf<typeof WEBHOOK_OPTIONS>;

/** Combinations of settings that the webhook refuses. */
const WEBHOOK_RULES: readonly Rule[] = [
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

/** The webhook as a settings program: the source of its help, its docs and its settings reader. */
export const WEBHOOK_PROGRAM: SettingsProgram<typeof WEBHOOK_OPTIONS> = {
  name: 'tke-eni-ip-webhook',
  options: WEBHOOK_OPTIONS,
  rules: WEBHOOK_RULES,
  source: 'webhook/options.ts',
  example: { flag: 'default-network', text: 'tke-bridge' },
};

/**
 * Reads the settings of the webhook. The only effect is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readWebhookConfig(input: SettingsInput): SettingsOutcome<WebhookConfig> {
  return readSettings(WEBHOOK_PROGRAM, input);
}
