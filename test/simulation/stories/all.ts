import type { Story } from '../story.ts';
import {
  comeAndGo,
  editedStatus,
  fullNode,
  hurried,
  offersTakenBack,
  oneAfterTheOther,
  onePod,
  otherRuleMode,
  restarts,
  restoredNode,
  secondEni,
  vandals,
} from './agents.ts';
import {
  blocksInStorm,
  brokenRecord,
  formerBlock,
  givenByHand,
  heldBlock,
  lateBlock,
  otherAllocator,
  subnetsUnknown,
} from './blocks.ts';
import { clusterRoutes, globalRoutes, ROUTE_STORMS, tableRoutes } from './ccm-routes.ts';
import {
  deletedClaims,
  editedClaims,
  keepingNode,
  lostClaims,
  lostForGood,
  namedSubnet,
  nominated,
  nominatedFirst,
  staticRules,
} from './claims.ts';
import { cloudNodes, lackedInstances, manyGone, nodesAndInstances } from './cloud-nodes.ts';
import { leaderlessEdits, twoDifferences } from './edits.ts';
import {
  editedEips,
  eipExpiry,
  eipLimits,
  eipLists,
  eips,
  eipsByHand,
  eipsInStorm,
  lentEips,
  staleEips,
  wrongEips,
} from './eips.ts';
import { ingressGroup, ingressLife, lateRules } from './ingresses.ts';
import { elsewhere, forcedAway, keptInStorm, keptLists, manyMoves, nextName, registeredAddress } from './kept.ts';
import {
  cutOffLeader,
  emptyLists,
  formerWrites,
  frozenLeader,
  lateWatch,
  lostDefinitions,
  lostSupplies,
  passedRevisions,
  restoredOffers,
  restoredServer,
  survivingWatches,
} from './leaders.ts';
import { fullDisk, lostJournal, offerBeforeBoot, reboots } from './machines.ts';
import { failedReturn, forgottenEni, keptEni, keptOnNodes, lostReturn, returnedEni, wholeEnis } from './owned.ts';
import { keptAddress, podCidrs } from './pods.ts';
import { failingCalls, occupiedInstance, refusedCreation, vpcQuota } from './refusals.ts';
import { routeQuota, routesInStorm, staleRoutes, wrongRoutes } from './routes.ts';
import { busyCollection, carelessRuntime, emptyRuntime, forcedDeletion } from './runtimes.ts';
import { admittedPods, emptySubnet, ignoredExtender, lastAddresses, silentExtender } from './scheduling.ts';
import { serviceStorm } from './service-storm.ts';
import {
  lateListeners,
  makingGoesWrong,
  podTargets,
  serviceLife,
  settledService,
  sourceRanges,
  staleTargets,
  toldDeletion,
} from './services.ts';
import {
  clearedGroups,
  drift,
  eniGrowth,
  forgottenAnswer,
  forgottenRequest,
  forgottenToken,
  fullSubnet,
  inheritedAnswer,
  inheritedRequest,
  lateRequest,
  leavesWhileAttaching,
  nodeLeaves,
  otherGroups,
  repeatedAnswer,
  requestOfLost,
  slowTask,
  staleLook,
  warmAndBack,
} from './supply.ts';
import { vanishedNodes } from './vanished.ts';
import { distrustedLists, rollingTargets } from './whole-services.ts';
import { misspelledSubnet, secondNode } from './wrong-input.ts';

/** Every story, by the name that `main.ts --story` takes. */
export const STORIES: Readonly<Record<string, Story>> = {
  ...{
    warmAndBack,
    eniGrowth,
    fullSubnet,
    lateRequest,
    inheritedRequest,
    forgottenRequest,
    forgottenAnswer,
    requestOfLost,
    slowTask,
    drift,
    otherGroups,
    nodeLeaves,
  },
  ...{ forgottenToken, repeatedAnswer, inheritedAnswer, staleLook, survivingWatches, passedRevisions },
  ...{ lateWatch, emptyLists, restoredServer, restoredOffers, lostDefinitions, cutOffLeader, frozenLeader },
  ...{ formerWrites, vanishedNodes, misspelledSubnet, secondNode },
  ...{ vpcQuota, refusedCreation, occupiedInstance, failingCalls },
  ...{ clearedGroups, leaderlessEdits, twoDifferences },
  ...{ keptAddress, eips, podCidrs },
  ...{ lackedInstances, manyGone, lastAddresses, emptySubnet, silentExtender, ignoredExtender, admittedPods },
  ...{ subnetsUnknown, heldBlock, formerBlock, otherAllocator, givenByHand, brokenRecord, lateBlock, blocksInStorm },
  ...{ wrongRoutes, routeQuota, staleRoutes, routesInStorm },
  ...{ forcedAway, elsewhere, deletedClaims, nominated, staticRules, keptLists, manyMoves, registeredAddress },
  ...{ nominatedFirst, namedSubnet, keepingNode, lostClaims, lostForGood, editedClaims, keptInStorm, nextName },
  ...{ lentEips, staleEips, wrongEips, eipLimits, eipsByHand, eipLists, eipExpiry, editedEips, eipsInStorm },
  ...{ onePod, comeAndGo, secondEni, oneAfterTheOther, restarts, hurried, otherRuleMode, vandals },
  ...{
    serviceLife,
    toldDeletion,
    podTargets,
    sourceRanges,
    settledService,
    makingGoesWrong,
    ingressLife,
    ingressGroup,
  },
  ...{ lateListeners, staleTargets, lateRules, rollingTargets, distrustedLists },
  ...{ busyCollection, emptyRuntime, carelessRuntime, forcedDeletion },
  ...{
    keptOnNodes,
    keptEni,
    forgottenEni,
    returnedEni,
    failedReturn,
    lostReturn,
    wholeEnis,
    fullDisk,
    offerBeforeBoot,
    reboots,
    lostJournal,
  },
  ...{ stormOfRoutes: ROUTE_STORMS[0], stormOfTables: ROUTE_STORMS[1], stormOfClusterRoutes: ROUTE_STORMS[2] },
  ...{ leavesWhileAttaching, serviceStorm, cloudNodes, nodesAndInstances, globalRoutes, tableRoutes, clusterRoutes },
  ...{ offersTakenBack, fullNode, restoredNode, editedStatus, lostSupplies },
};

/** Stories that take more than a second of a core each, and of whose faults shorter ones find most: the suite long plays them. */
export const LONG_STORIES: readonly Story[] = [
  ...[vanishedNodes, lostForGood, manyMoves, editedClaims, keptLists],
  manyGone,
  ...[editedEips, eipLimits, eipLists, eipExpiry, registeredAddress],
];

/** Stories in which much happens by chance: each seed is another one. */
export const STORMS: readonly Story[] = [
  blocksInStorm,
  routesInStorm,
  serviceStorm,
  eipsInStorm,
  keptInStorm,
  nodesAndInstances,
  ...ROUTE_STORMS,
];
