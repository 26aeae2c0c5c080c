import { openAddressesInUse } from './addresses-in-use.ts';
import { openAgentDisk } from './agent-disk.ts';
import {
  openCloudIsObjects,
  openFewEvents,
  openLeasesAreSandboxes,
  openNobodyWaits,
  openNothingUnderWay,
  openSupplyMeetsDemand,
} from './at-rest.ts';
import type { OpenAuditor } from './auditor.ts';
import { openBalancerTargets } from './balancer-targets.ts';
import { openBalancersAreOwners } from './balancers-at-rest.ts';
import { openBindings } from './bindings.ts';
import { openBlocks } from './blocks.ts';
import { openCallsOnRecord } from './calls-on-record.ts';
import { openClaimsAreMarks } from './claims.ts';
import { openEipsAreClaims } from './eips.ts';
import { openExplainedPackets } from './explained-packets.ts';
import { openGrowingEpochs } from './growing-epochs.ts';
import { openHistory } from './history.ts';
import { openLeasesOfLock } from './leases-of-lock.ts';
import { openNodesAreInstances } from './nodes.ts';
import { openOneCallEach } from './one-call-each.ts';
import { openOthersState } from './others-state.ts';
import { openOwnBalancers } from './own-balancers.ts';
import { openOwnFields } from './own-fields.ts';
import { openPackets } from './packets.ts';

/** Every auditor of a world. */
export const AUDITORS: readonly OpenAuditor[] = [
  ...[openAddressesInUse, openCallsOnRecord, openLeasesOfLock, openGrowingEpochs, openOwnFields, openOneCallEach],
  ...[openNobodyWaits, openCloudIsObjects, openNothingUnderWay, openSupplyMeetsDemand, openLeasesAreSandboxes],
  ...[openFewEvents, openEipsAreClaims, openBlocks, openClaimsAreMarks, openPackets, openAgentDisk, openHistory],
  ...[
    openBalancerTargets,
    openOwnBalancers,
    openBalancersAreOwners,
    openNodesAreInstances,
    openBindings,
    openOthersState,
    openExplainedPackets,
  ],
];
