import type { Faults } from '../../runtime/decode.ts';
import { readSettings, type SettingsInput, type SettingsOutcome } from '../../runtime/settings/read-settings.ts';
import { type BlockSettings, findBlockFaults, maskSizeFor } from './cidr-blocks.ts';
import { IPAMD_PROGRAM, type IpamdConfig } from './options.ts';

/**
 * Reads ipamd's settings from `input`; only its `readFile` does I/O.
 * @throws ConfigError with every fault of flags, variables and file; exit with `EX_CONFIG` then.
 */
export function readIpamdConfig(input: SettingsInput): SettingsOutcome<IpamdConfig> {
  return readSettings(IPAMD_PROGRAM, input, checkBlocks);
}

/** Returns the blocks that the flags describe; undefined without --allocate-node-cidrs. */
export function blockSettingsOf(config: IpamdConfig): BlockSettings | undefined {
  const { allocateNodeCidrs, clusterCidrs, serviceCidr, nodeCidrMaskSize, maxPodsPerNode } = config;
  if (!allocateNodeCidrs) return undefined;
  const ofPods = maskSizeFor(maxPodsPerNode === 0 ? DEFAULT_MAX_PODS : maxPodsPerNode);
  return { clusterCidrs, serviceCidr, maskSize: nodeCidrMaskSize === 0 ? ofPods : nodeCidrMaskSize };
}

/** Returns what is kept of Pods, by the two flags that say it. */
export function podRecordsOf({ recordPods, podRecords }: Pick<IpamdConfig, 'recordPods' | 'podRecords'>): PodRecords {
  return recordPods ? podRecords : 'none';
}

type PodRecords = IpamdConfig['podRecords'];

/** As the product has it. */
const DEFAULT_MAX_PODS = 256;

function checkBlocks(config: IpamdConfig, faults: Faults): void {
  const { nodeCidrMaskSize, maxPodsPerNode } = config;
  if (nodeCidrMaskSize !== 0 && maxPodsPerNode !== 0 && maskSizeFor(maxPodsPerNode) < nodeCidrMaskSize) {
    const expected = `at most ${2 ** (32 - nodeCidrMaskSize)}, as a block of --node-cidr-mask-size=${nodeCidrMaskSize} has`;
    faults.add('--max-pods-per-node', expected, maxPodsPerNode);
  }
  const settings = blockSettingsOf(config);
  if (settings === undefined || settings.clusterCidrs.length === 0) return;
  for (const { flag, expected, value } of findBlockFaults(settings)) faults.add(flag, expected, value);
}
