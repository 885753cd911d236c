/** Nothing to show, and what to do about it. */
export function Empty({ title, action }: { title: string; action?: string }) {
  return (
    <div class="empty" role="note">
      <p>{title}</p>
      {action !== undefined && <p class="do">{action}</p>}
    </div>
  );
}
