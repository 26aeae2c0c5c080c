import type { StaticIpConfig } from '../../crd/static-ip-config.ts';
import type { Kept, VipFacts } from '../records/record-facts.ts';
import type { ClaimDifference } from './find-differences.ts';

/** What of kept addresses is read beside claims, which tell of their faults themselves. */
export type ReadObjects = {
  readonly vips: Iterable<Pick<VipFacts, 'name' | 'podKey' | 'kept'>>;
  /** By `namespace/name`. */
  readonly configs: Iterable<readonly [key: string, config: Kept<StaticIpConfig>]>;
};

/** Finds the VpcIPs and StaticIPConfigs that cannot be read: nothing is done to them, or by them. Pure. */
export function findUnreadable({ vips, configs }: ReadObjects): readonly ClaimDifference[] {
  return [
    ...[...vips].flatMap(({ name, podKey, kept }): readonly ClaimDifference[] =>
      kept === undefined || kept.faults.length === 0
        ? []
        : [{ kind: 'vip-unreadable', key: podKey, object: { kind: 'VpcIP', name }, message: wordsOf(kept) }],
    ),
    ...[...configs].flatMap(([key, config]): readonly ClaimDifference[] => {
      if (config.faults.length === 0) return [];
      const [namespace = '', name = ''] = key.split('/');
      const object = { kind: 'StaticIPConfig', namespace, name } as const;
      return [{ kind: 'config-unreadable', key: '', object, message: wordsOf(config) }];
    }),
  ];
}

function wordsOf({ faults }: Pick<Kept<unknown>, 'faults'>): string {
  return faults.map(({ path, expected, got }) => `${path}: expected ${expected}, got ${got}`).join('; ');
}
