import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { CCM_PROGRAM, type CcmConfig } from './options.ts';

/**
 * Reads the settings from `input`; only its `readFile` does I/O.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readCcmConfig(input: SettingsInput): SettingsOutcome<CcmConfig> {
  return readSettings(CCM_PROGRAM, input);
}
