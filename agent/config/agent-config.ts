import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { AGENT_PROGRAM, type AgentConfig } from './options.ts';

/**
 * Reads the agent's settings. Pure but for `readFile`.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readAgentConfig(input: SettingsInput): SettingsOutcome<AgentConfig> {
  return readSettings(AGENT_PROGRAM, input, checkTogether);
}

/** Notes settings that are fine each by itself and not together. */
function checkTogether(config: AgentConfig, faults: Faults): void {
  if (config.forceReuseAfterMs > config.addWaitMs) {
    faults.add('--force-reuse-after', `at most --add-wait, ${config.addWaitMs} ms`, config.forceReuseAfterMs);
  }
  if (config.listenAddress !== '' && config.listenAddress === config.metricsAddress) {
    faults.add('--listen-address', 'another address than --metrics-address', config.listenAddress);
  }
}
