import { option } from '../runtime/settings/option.ts';
import { pathValue, textValue, wholeNumberValue } from '../runtime/settings/option-value.ts';
import { type Rule, refused } from '../runtime/settings/rule.ts';

/** The settings of a connection to the API server. */
export type ConnectionSettings = {
  readonly kubeconfig: string;
  readonly master: string;
  readonly kubeClientQps: number;
  readonly kubeClientBurst: number;
};

const SECTION = 'Kubernetes';
const MAX_CALLS_PER_SECOND = 10_000;

/** The URL of the API server; '' for that of the kubeconfig or of the cluster. */
const masterValue = textValue(
  /^(https?:\/\/[^\s/?#]+)?$/,
  'URL',
  "a URL such as https://10.0.0.1:6443, or '' for the kubeconfig's or the cluster's own",
);

/**
 * Makes the settings that say where the API server is.
 * @param texts What the help of one program adds, each from a comma or a space on.
 */
export function apiServerOptions(texts: { readonly kubeconfig?: string; readonly master?: string }) {
  return {
    kubeconfig: option(
      SECTION,
      'kubeconfig',
      pathValue(true),
      '',
      `Kubeconfig of the API server; '' takes the ServiceAccount of the Pod.${texts.kubeconfig ?? ''}`,
    ),
    master: option(
      SECTION,
      'master',
      masterValue,
      '',
      `URL of the API server, instead of the Service address${texts.master ?? ''}.`,
    ),
  };
}

/** Makes the settings of the rate of calls, with their defaults and help; `flags` is what their two flags begin with. */
export function clientRateOptions(
  qps: { readonly value: number; readonly help: string },
  burst: { readonly value: number; readonly help?: string; readonly max?: number },
  flags: 'kube-client' | 'kube-api' = 'kube-client',
) {
  return {
    kubeClientQps: option(SECTION, `${flags}-qps`, wholeNumberValue(1, MAX_CALLS_PER_SECOND), `${qps.value}`, qps.help),
    kubeClientBurst: option(
      SECTION,
      `${flags}-burst`,
      wholeNumberValue(1, burst.max ?? MAX_CALLS_PER_SECOND),
      `${burst.value}`,
      burst.help ?? 'Calls that may go at once after a quiet time.',
    ),
  };
}

/** Fewer calls at once than in a second are refused; `flags` is what their two flags begin with. */
export function clientRateRule(flags: 'kube-client' | 'kube-api' = 'kube-client'): Rule {
  const [qps, burst] = [`${flags}-qps`, `${flags}-burst`];
  return refused(burst, `at least --${qps}, {${qps}}`, { sum: [qps], above: burst });
}
