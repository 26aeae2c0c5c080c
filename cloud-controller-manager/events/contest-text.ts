/** Returns what an event says of a field that another client writes as well. */
export function contestText(what: string): string {
  return `another client keeps changing ${what} back: it is written at most once a minute from now on. Find the other client by metadata.managedFields, and stop it or let it leave this object alone`;
}
