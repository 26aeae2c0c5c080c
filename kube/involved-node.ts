/**
 * Returns the reference of an event to a Node. Only with the Node's uid does `kubectl describe node` list the event; one
 * of a Node whose uid is unknown is found by `kubectl get events`.
 */
export function involvedNode({ name, uid }: { readonly name: string; readonly uid: string }) {
  return { apiVersion: 'v1', kind: 'Node', name, ...(uid === '' ? {} : { uid }) };
}
