import type { NodeEntry } from '../index/scheduler-index.ts';

/** The index entries of nodes, in the order of their names. */
type Views = readonly (NodeEntry | undefined)[];

/** A list of nodes, split by what a static address of one zone means for them. */
type ZoneSplit = {
  /** The nodes that the zone does not exclude; the whole list when it excludes none. */
  readonly names: readonly string[];
  readonly views: Views;
  /** The nodes that cannot take the address, all for the same reason. */
  readonly otherZone: readonly string[];
};

/**
 * Splits a list of nodes by the zone of a static address, once for each list and zone.
 * @param views must not change afterwards, nor may the `staticZone` of its entries
 */
export function splitByZone(names: readonly string[], views: Views, zone: string): ZoneSplit {
  const known = splits.get(views) ?? new Map<string, ZoneSplit>();
  splits.set(views, known);
  const split = known.get(zone) ?? makeSplit(names, views, zone);
  known.set(zone, split);
  return split;
}

const splits = new WeakMap<Views, Map<string, ZoneSplit>>();

function makeSplit(names: readonly string[], views: Views, zone: string): ZoneSplit {
  const isOther = views.map((view) => view !== undefined && view.staticZone !== '' && view.staticZone !== zone);
  if (!isOther.includes(true)) return { names, views, otherZone: [] };
  return {
    names: names.filter((_, index) => isOther[index] === false),
    views: views.filter((_, index) => isOther[index] === false),
    otherZone: names.filter((_, index) => isOther[index] === true),
  };
}
