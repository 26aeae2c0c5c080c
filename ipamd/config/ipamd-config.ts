import { checkClientRate } from '../../kube/check-client-rate.ts';
import { checkElectionSettings } from '../../kube/election/election-settings.ts';
import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { IPAMD_PROGRAM, type IpamdConfig } from './options.ts';

/**
 * Reads ipamd's settings from `input`; only its `readFile` does I/O.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readIpamdConfig(input: SettingsInput): SettingsOutcome<IpamdConfig> {
  return readSettings(IPAMD_PROGRAM, input, checkTogether);
}

function checkTogether(config: IpamdConfig, faults: Faults): void {
  checkWarmTargets(config, faults);
  if (config.credentials === 'file' && config.credentialsFile === '') {
    faults.add('--credentials-file', 'a file, as --credentials=file wants one', undefined);
  }
  checkElectionSettings(config, faults);
  checkClientRate(config, faults);
  if (config.securityGroups.length > 0 && !config.enableSecurityGroups) {
    faults.add('--enable-security-groups', 'true, as --security-groups are given', false);
  }
}

function checkWarmTargets(config: IpamdConfig, faults: Faults): void {
  if (config.ipMinWarmTarget > config.ipMaxWarmTarget) {
    const expected = `at most --ip-max-warm-target, ${config.ipMaxWarmTarget}`;
    faults.add('--ip-min-warm-target', expected, config.ipMinWarmTarget);
  }
  if (config.eniMinWarmTarget > config.eniMaxWarmTarget) {
    const expected = `at most --eni-max-warm-target, ${config.eniMaxWarmTarget}`;
    faults.add('--eni-min-warm-target', expected, config.eniMinWarmTarget);
  }
}
