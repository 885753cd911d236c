// The first picture comes first: what it needs is asked at once, everything else waits until it is on
// screen, so that two cores draw one thing after the other instead of all of them late.

let release: () => void = () => undefined;
let shown = false;

/** Fulfilled once the first picture is on screen, or it is clear that none will come. */
export const firstPicture = new Promise<void>((resolve) => {
  release = resolve;
});

/** `painted`: something was drawn; false where there is nothing to draw. */
export function pictureDone(painted: boolean): void {
  if (shown) return;
  shown = true;
  if (painted) performance.mark('memscope.picture'); // bench: tests/web/frames.ts
  // After the browser has put it on screen.
  requestAnimationFrame(() => setTimeout(release, 0));
  // In a tab that is not shown there are no frames.
  setTimeout(release, 300);
}
