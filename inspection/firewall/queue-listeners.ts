/**
 * Reports whether a program reads from one of the queues that a firewall rule gives packets to. Where that is not known it
 * is taken for granted.
 * @param listeners numbers of the queues that a program reads from
 */
export function isRead(
  { first, last }: { readonly first: number; readonly last: number },
  listeners: readonly number[] | undefined,
): boolean {
  return listeners === undefined || listeners.some((queue) => queue >= first && queue <= last);
}
