import { option } from './option.ts';
import { choiceValue, listenValue } from './option-value.ts';

/** Makes the settings of what a daemon shows of itself. */
export function observabilityOptions(
  metricsAddress: string,
  metricsHelp = "Serves /metrics, /healthz and /readyz; '' for none.",
) {
  return {
    metricsAddress: option('Observability', 'metrics-address', listenValue, metricsAddress, metricsHelp),
    logLevel: option(
      'Observability',
      'log-level',
      choiceValue('debug', 'info', 'warn', 'error'),
      'info',
      'Least important lines that are written.',
    ),
  };
}
