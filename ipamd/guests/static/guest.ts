import type { StaticIpRule } from '../../../crd/select-static-ip-config.ts';
import { staticIpConfig } from '../../../crd/static-ip-config.ts';
import { type Informer, openInformer } from '../../../kube/informer.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { STATIC_IP_CONFIGS } from '../../../kube/resource-types.ts';
import { Faults } from '../../../runtime/decode.ts';
import type { StaticObject } from '../../cache/record-facts.ts';
import type { Guest } from '../../term/guest.ts';
import type { InformerDeps } from '../../term/open-informers.ts';
import { AddressConflicts, createLookUpHolder, noteRefusal } from './address-conflicts.ts';
import { runClaimAudit } from './audit-claims.ts';
import { CONFIGS_BY_NAMESPACE } from './build-claim-view.ts';
import { ClaimWaits, MIN_WAIT_MS } from './claim-waits.ts';
import type { ClaimsTerm } from './claims-term.ts';
import { runClaims } from './run-claims.ts';
import { reservationSweep } from './sweep-reservations.ts';
import { reportUnservedRequests } from './unserved-requests.ts';

/** Static addresses: VpcIPClaims, StaticIPConfigs, expiry, moves between nodes, and addresses reserved in the VPC. */
export const STATIC_ADDRESSES: Guest = {
  name: 'static-addresses',
  queue: 'claims',
  open: (term, claims) => {
    const { clock, random } = term;
    const waits = new ClaimWaits(clock);
    const conflicts = new AddressConflicts(clock, random, createLookUpHolder(term));
    const configs = openStaticIpConfigs(term.informerDeps);
    const own: ClaimsTerm = { ...term, enqueueNode: term.noteRequests, queues: { claims }, configs, conflicts, waits };
    return {
      informers: [configs],
      controllers: [
        (signal) => {
          const stop = reportUnservedRequests(term);
          return runClaims(own, signal).finally(stop);
        },
        (signal) => runClaimAudit(own, signal),
      ],
      sweeps: [reservationSweep(own)],
      notes: {
        claimRefused: (key, refusal) => noteRefusal(own, key, refusal),
        claimsWait: (node, reasons) => {
          for (const key of waits.note(node, reasons)) claims.addAfter(key, MIN_WAIT_MS);
        },
      },
    };
  },
};

/** Opens the informer of StaticIPConfigs; for the leader only. */
export function openStaticIpConfigs(deps: InformerDeps): Informer<StaticObject<StaticIpRule>> {
  return openInformer<StaticObject<StaticIpRule>>({
    ...deps,
    type: STATIC_IP_CONFIGS,
    decode: decodeStaticIpConfig,
    indexes: { [CONFIGS_BY_NAMESPACE]: ({ decoded }) => [decoded?.metadata.namespace ?? []].flat() },
    bounds: STATIC_IP_CONFIG_BOUNDS,
  });
}

/** Decodes a StaticIPConfig for an informer: name and spec, as nothing else of it is read or written. */
function decodeStaticIpConfig(object: KubeObject): StaticObject<StaticIpRule> {
  const faults = new Faults();
  const { metadata, spec } = staticIpConfig(object, '', faults) ?? {};
  if (metadata === undefined || faults.list.length > 0) return { decoded: undefined, faults: faults.list };
  const { name, namespace } = metadata;
  const named = { name, ...(namespace === undefined ? {} : { namespace }) };
  return { decoded: { metadata: named, ...(spec === undefined ? {} : { spec }) }, faults: [] };
}

/** What is kept of StaticIPConfigs; all count, as each look compares a Pod with every rule of its namespace. */
const STATIC_IP_CONFIG_BOUNDS = {
  objectBytes: 524_288,
  namespaceBytes: 8 * 1_048_576,
  smallBytes: 0,
  instead: (_: KubeObject, __: string, got: string): StaticObject<StaticIpRule> => ({
    decoded: undefined,
    faults: [{ path: '', expected: 'fewer or smaller StaticIPConfigs', got }],
  }),
};
