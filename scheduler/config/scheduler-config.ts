import { checkClientRate } from '../../kube/check-client-rate.ts';
import { checkElectionSettings } from '../../kube/election/election-settings.ts';
import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { SCHEDULER_PROGRAM, type SchedulerConfig } from './options.ts';

/**
 * Reads the settings of the scheduler extender. The only effect is `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readSchedulerConfig(input: SettingsInput): SettingsOutcome<SchedulerConfig> {
  return readSettings(SCHEDULER_PROGRAM, input, checkTogether);
}

function checkTogether(config: SchedulerConfig, faults: Faults): void {
  const { tlsCertFile, tlsPrivateKeyFile, clientCaFile } = config;
  if (config.listenAddress === '') faults.add('--listen-address', 'an address', '');
  if (tlsCertFile !== '' && tlsPrivateKeyFile === '') {
    faults.add('--tls-private-key-file', 'a file, as --tls-cert-file is given', undefined);
  }
  if (tlsCertFile === '' && tlsPrivateKeyFile !== '') {
    faults.add('--tls-cert-file', 'a file, as --tls-private-key-file is given', undefined);
  }
  if (clientCaFile !== '' && tlsCertFile === '') {
    faults.add('--tls-cert-file', 'a file, as --client-ca-file is given', undefined);
  }
  checkElectionSettings(config, faults);
  checkClientRate(config, faults);
}
